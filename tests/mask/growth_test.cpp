// Planning costs what a mask shows, not N²; and runs allocate nothing.

#include <treadle/graph/mask/conventions.hpp>
#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/mask/tiles.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> allocations{0};
}

// Not inlined, or g++ takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace treadle;
using mask::Mask;
using mask::Tile;
using mask::Tiles;

namespace {

mask::Counts count(const Mask& m, std::int64_t n, std::span<const scalar::Table> tables = {}) {
  return Tiles(m.view(), m.root(), {.q_len = n, .k_len = n}, tables).count_all(64, 256);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(growth)

BOOST_AUTO_TEST_CASE(a_window_is_planned_in_linear_time_and_constant_memory) {
  const Mask m = causal & window(256, 0);
  const mask::Counts small = count(m, 250'000), large = count(m, 1'000'000);
  BOOST_TEST(large.useful == 1'000'000LL * 257 - 256 * 257 / 2);
  BOOST_TEST(static_cast<double>(large.evaluations) / static_cast<double>(small.evaluations) < 5);
  BOOST_TEST(static_cast<double>(large.intervals) / static_cast<double>(small.intervals) < 5);
  BOOST_TEST(static_cast<double>(large.executed) / static_cast<double>(large.useful) < 1.6);
  BOOST_TEST(Tiles(m.view(), m.root(), {.q_len = 1'000'000, .k_len = 1'000'000}).workspace_bytes() < 100'000u);
}

BOOST_AUTO_TEST_CASE(documents_are_planned_in_linear_time) {
  const Mask m = causal & documents("doc");
  mask::Counts counts[2];
  for (int i = 0; i < 2; ++i) {
    const std::int64_t n = i ? 400'000 : 100'000;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
    for (std::int64_t k = 0; k < n; ++k) ids[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(k / 500);
    const scalar::Table tables[] = {{"doc", dense_view(ids.data(), i32, std::span<const std::int64_t>(&n, 1))}};
    counts[i] = count(m, n, tables);
    BOOST_TEST(counts[i].useful == n / 500 * (500 * 501 / 2));
  }
  BOOST_TEST(static_cast<double>(counts[1].evaluations) / static_cast<double>(counts[0].evaluations) < 5);
}

BOOST_AUTO_TEST_CASE(a_strip_costs_the_same_from_1k_to_1m_tokens) {
  // Every mask whose rows keep a bounded number of keys. Strips are sampled: the first, the last and some between.
  struct Sparse {
    const char* name;
    Mask mask;
  };
  const Sparse sparse[] = {
      {"window", window(40, 8)},
      {"Hugging Face", conventions::hugging_face_sliding_window(40)},
      {"dilated", dilated(window(80, 0), 3)},
      {"blocks", block_window(64, 1, 0)},
      {"prefix", (causal & window(30, 0)) | prefix(5)},
      {"global tokens", window(20, 20) | global_tokens({0, 9}, false)},
      {"documents", documents("documents")},
      {"documents and causal", causal & documents("documents")},
      {"packed", cumulative_lengths("bounds")},
      {"packed, with a window", cumulative_lengths("bounds", "bounds", 30, 0)},
      {"packed and causal", causal & cumulative_lengths("bounds")},
      {"key lengths", window(30, 30) & key_lengths("lengths")},
      {"block list", block_list("list", 64, 3)},
      {"block list by head", block_list("list", 64, 3, Blocks::per_head)},
      {"inverted", causal & ~(~window(50, 0) | ~causal)},
      {"a user's", mask_mod([](auto, auto h, auto q, auto k) { return (k <= q) & (q - k < 16 * (h + 1)); })}};
  std::vector<double> cost(std::size(sparse));
  for (const std::int64_t n : {1'000, 30'000, 1'000'000}) {
    constexpr std::int64_t document = 200;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(n)), bounds,
        lengths = {static_cast<std::int32_t>(n - n / 3)}, list;
    for (std::int64_t k = 0; k < n; ++k) ids[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(k / document);
    for (std::int64_t k = 0; k <= n; k += document) bounds.push_back(static_cast<std::int32_t>(k));
    const std::int64_t blocks = (n + 63) / 64;
    for (std::int64_t row = 0; row < blocks; ++row)
      for (const std::int64_t block : {std::int64_t{0}, row, row * 7919 % blocks})
        list.push_back(static_cast<std::int32_t>(block));
    const std::int64_t shape[] = {n}, boundaries[] = {static_cast<std::int64_t>(bounds.size())}, one[] = {1},
                       lists[] = {blocks, 3};
    const scalar::Table tables[] = {{"documents", dense_view(ids.data(), i32, shape)},
                                    {"bounds", dense_view(bounds.data(), i32, boundaries)},
                                    {"lengths", dense_view(lengths.data(), i32, one)},
                                    {"list", dense_view(list.data(), i32, lists)}};
    for (std::size_t i = 0; i < std::size(sparse); ++i) {
      const Tiles t(sparse[i].mask.view(), sparse[i].mask.root(), {.q_len = n, .k_len = n}, tables);
      std::vector<std::uint64_t> workspace(t.workspace_bytes() / 8);
      BOOST_TEST(t.workspace_bytes() < 100'000u);
      const std::int64_t strips = n / 64, step = std::max<std::int64_t>(strips / 12, 1);
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t strip = 0; strip < strips; strip += step, ++count) {
        Tiles::Stream s = t.stream(0, 0, strip * 64, strip * 64 + 64, 256, workspace.data());
        Tile tile;
        while (s.next(tile)) {
        }
        sum += static_cast<double>(s.intervals() * 16 + s.elements());  // an interval costs what a few elements do
      }
      const double mean = sum / static_cast<double>(count);
      if (n == 1'000) cost[i] = mean;
      BOOST_TEST_CONTEXT(sparse[i].name << ", " << n) BOOST_TEST(mean < 1.6 * cost[i] + 3'000);
    }
  }
}

BOOST_AUTO_TEST_CASE(binding_again_and_streaming_allocate_nothing) {
  const Mask m = (causal & documents("doc") & key_lengths("lengths") & cumulative_lengths("bounds")) |
                 (block_list("list", 64, 2) & !global_tokens("flags"));
  constexpr std::int64_t n = 700;
  std::vector<std::int32_t> ids(n), lengths(2, 600), bounds = {0, 100, 350, n}, list(2 * 11, 3);
  std::vector<std::uint8_t> flags(n);
  const std::int64_t shape[] = {n}, batches[] = {2}, boundaries[] = {4}, lists[] = {11, 2};
  const scalar::Table tables[] = {{"doc", dense_view(ids.data(), i32, shape)},
                                  {"lengths", dense_view(lengths.data(), i32, batches)},
                                  {"bounds", dense_view(bounds.data(), i32, boundaries)},
                                  {"list", dense_view(list.data(), i32, lists)},
                                  {"flags", dense_view(flags.data(), boolean, shape)}};
  Tiles t(m.view(), m.root(), {.batch = 2, .q_len = n, .k_len = n}, tables);
  std::vector<std::uint64_t> workspace(t.workspace_bytes() / 8);
  const std::size_t before = allocations;
  std::int64_t useful = 0;
  for (int run = 0; run < 5; ++run) {
    for (std::int64_t k = 0; k < n; ++k) ids[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(k / (100 + run));
    lengths[1] = 100 * run;
    bounds[1] = 100 + run;
    flags[static_cast<std::size_t>(run)] = 1;
    t.rebind({.batch = 2, .q_len = n - run, .k_len = n}, tables);
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t q = 0; q < n - run; q += 64) {
        Tiles::Stream s = t.stream(b, 0, q, std::min(q + 64, n - run), 128, workspace.data());
        for (Tile tile; s.next(tile);) useful += tile.k1 - tile.k0;
      }
  }
  BOOST_TEST(allocations - before == 0u);
  BOOST_TEST(useful > 0);
}

BOOST_AUTO_TEST_SUITE_END()

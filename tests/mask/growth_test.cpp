// Planning costs what a mask shows, not N²; and runs allocate nothing.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/mask/tiles.hpp>

#include <boost/test/unit_test.hpp>

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

BOOST_AUTO_TEST_CASE(binding_again_and_streaming_allocate_nothing) {
  const Mask m = causal & documents("doc") & key_lengths("lengths");
  constexpr std::int64_t n = 700;
  std::vector<std::int32_t> ids(n), lengths(2, 600);
  const std::int64_t shape[] = {n}, batches[] = {2};
  const scalar::Table tables[] = {{"doc", dense_view(ids.data(), i32, shape)},
                                  {"lengths", dense_view(lengths.data(), i32, batches)}};
  Tiles t(m.view(), m.root(), {.batch = 2, .q_len = n, .k_len = n}, tables);
  std::vector<std::uint64_t> workspace(t.workspace_bytes() / 8);
  const std::size_t before = allocations;
  std::int64_t useful = 0;
  for (int run = 0; run < 5; ++run) {
    for (std::int64_t k = 0; k < n; ++k) ids[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(k / (100 + run));
    lengths[1] = 100 * run;
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

// Masks by blocks: chunks with look-back and BigBird, counted against loops that know nothing of the algebra.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/mask/patterns.hpp>
#include <treadle/graph/mask/random_blocks.hpp>
#include <treadle/graph/mask/tiles.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

using namespace treadle;
using mask::Mask;
using mask::RandomBlocks;
using mask::Tiles;

namespace {

using Keep = std::function<bool(std::int64_t q, std::int64_t k)>;

std::int64_t brute_force(std::int64_t n, const Keep& keep) {
  std::int64_t pairs = 0;
  for (std::int64_t q = 0; q < n; ++q)
    for (std::int64_t k = 0; k < n; ++k) pairs += keep(q, k);
  return pairs;
}

mask::Counts counts(const Mask& m, std::int64_t n, std::span<const scalar::Table> tables = {}, std::int64_t strip = 48,
                    std::int64_t block = 192) {
  return Tiles(m.view(), m.root(), {.q_len = n, .k_len = n}, tables).count_all(strip, block);
}

/// BigBird over n tokens: its table and its mask.
struct BigBird {
  std::int64_t block, blocks;
  RandomBlocks random;
  std::vector<std::uint8_t> table;

  BigBird(std::int64_t n, std::int64_t block_size, const RandomBlocks& r)
      : block(block_size), blocks((n + block_size - 1) / block_size), random(r), table(r.table(blocks, blocks)) {}
  Mask mask() const {
    const Mask m = block_window(block, random.left, random.right) | global_prefix(random.first * block) |
                   block_table("random", block);
    return random.causal ? causal & m : m;
  }
  std::vector<scalar::Table> tables() {
    const std::int64_t shape[] = {blocks, blocks};
    return {{"random", dense_view(table.data(), boolean, shape)}};
  }
  bool keep(std::int64_t q, std::int64_t k) const {
    const std::int64_t i = q / block, j = k / block;
    const bool kept = (j >= i - random.left && j <= i + random.right) || i < random.first || j < random.first ||
                      table[static_cast<std::size_t>(i * blocks + j)] != 0;
    return kept && (!random.causal || k <= q);
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(blocks)

BOOST_AUTO_TEST_CASE(chunks_with_look_back_are_counted_exactly) {
  for (const std::int64_t n : {1, 7, 64, 65, 191, 257})
    for (const std::int64_t chunk : {1, 5, 16, 64})
      for (const std::int64_t back : {0, 1, 3}) {
        const auto local = [&](std::int64_t q, std::int64_t k) {
          return k / chunk <= q / chunk && k / chunk >= q / chunk - back;
        };
        BOOST_TEST_CONTEXT("n " << n << " chunk " << chunk << " back " << back) {
          BOOST_TEST(counts(block_window(chunk, back, 0), n).useful == brute_force(n, local));
          BOOST_TEST(counts(causal & block_window(chunk, back, 0), n).useful ==
                     brute_force(n, [&](auto q, auto k) { return local(q, k) && k <= q; }));
        }
      }
  // Whole chunks: the first has one chunk to see, all others two.
  BOOST_TEST(counts(block_window(64, 1, 0), 64 * 10).useful == 64 * 64 * (1 + 9 * 2));
}

BOOST_AUTO_TEST_CASE(bigbird_is_counted_exactly) {
  for (const bool is_causal : {false, true})
    for (const std::int64_t block : {4, 8, 16, 64})
      for (const std::int64_t n : {1, 63, 128, 333, 640}) {
        BigBird b(n, block, {.per_row = 2, .left = 1, .right = is_causal ? 0 : 1, .first = 1, .causal = is_causal});
        BOOST_TEST_CONTEXT("causal " << is_causal << " block " << block << " n " << n) {
          BOOST_TEST(counts(b.mask(), n, b.tables()).useful ==
                     brute_force(n, [&](auto q, auto k) { return b.keep(q, k); }));
        }
      }
}

BOOST_AUTO_TEST_CASE(random_blocks_are_new_to_their_row) {
  for (const bool is_causal : {false, true}) {
    const RandomBlocks r{.per_row = 3, .left = 1, .right = 1, .first = 2, .causal = is_causal, .seed = 5};
    const std::int64_t n = 40;
    const auto table = r.table(n, n);
    for (std::int64_t row = 0; row < n; ++row) {
      std::int64_t count = 0, free = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const bool seen = row < 2 || k < 2 || (k >= row - 1 && k <= row + 1) || (is_causal && k >= row);
        free += !seen;
        if (table[static_cast<std::size_t>(row * n + k)] == 0) continue;
        ++count;
        BOOST_TEST(!seen, "row " << row << " draws block " << k);
      }
      BOOST_TEST(count == std::min<std::int64_t>(free, 3), "row " << row);
    }
  }
}

BOOST_AUTO_TEST_CASE(random_blocks_are_seeded_and_uniform) {
  const RandomBlocks one{.seed = 1}, two{.seed = 2};
  BOOST_TEST(one.table(50, 50) == one.table(50, 50), boost::test_tools::per_element());
  BOOST_TEST((one.table(50, 50) != two.table(50, 50)));
  BOOST_TEST(one.table(0, 0).empty());
  // Row 60 of 64 has 59 - 2 = 57 blocks before its window and 2 behind it; each is drawn in 3 of 59 tables.
  std::vector<int> hits(64, 0);
  constexpr int tables = 4000;
  for (int seed = 0; seed < tables; ++seed) {
    const auto table = RandomBlocks{.seed = static_cast<std::uint64_t>(seed)}.table(64, 64);
    for (std::size_t k = 0; k < 64; ++k) hits[k] += table[60 * 64 + k];
  }
  BOOST_TEST(std::accumulate(hits.begin(), hits.end(), 0) == 3 * tables);
  const double expected = 3.0 * tables / 59;
  for (std::size_t k = 0; k < 64; ++k) {
    if (k < 2 || (k >= 59 && k <= 61)) continue;
    BOOST_TEST(std::abs(hits[k] - expected) < 6 * std::sqrt(expected), "block " << k << ": " << hits[k]);
  }
}

BOOST_AUTO_TEST_CASE(planned_work_grows_with_the_length) {
  const auto grows = [](const mask::Counts& small, const mask::Counts& large, double times) {
    const auto ratio = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    BOOST_TEST(ratio(large.useful, small.useful) < times * 1.02);
    BOOST_TEST(ratio(large.executed, small.executed) < times * 1.02);
    BOOST_TEST(ratio(large.evaluations, small.evaluations) < times * 1.25);  // the halvings add a logarithm
    BOOST_TEST(ratio(large.executed, large.useful) < 1.6);
  };
  for (const bool is_causal : {false, true}) {
    const Mask chunks = block_window(64, 1, 0), local = is_causal ? causal & chunks : chunks;
    grows(counts(local, 50'000), counts(local, 200'000), 4);
    BigBird small(8'192, 64, {.right = is_causal ? 0 : 1, .causal = is_causal}),
        large(32'768, 64, {.right = is_causal ? 0 : 1, .causal = is_causal});
    grows(counts(small.mask(), 8'192, small.tables()), counts(large.mask(), 32'768, large.tables()), 4.2);
  }
}

BOOST_AUTO_TEST_CASE(bad_blocks_are_refused) {
  const auto sentence = [](auto&& make) -> std::string {
    try {
      make();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "accepted";
  };
  BOOST_TEST(sentence([] { (void)block_window(0, 1, 1); }) == "the block of a block window is 1 or more");
  BOOST_TEST(sentence([] { (void)block_window(8, -2, 1); }) ==
             "a block window is (left, right), each 0 or more, or -1 for no bound");
  BOOST_TEST(sentence([] { (void)global_prefix(-1); }) == "the number of global tokens is 0 or more");
}

BOOST_AUTO_TEST_CASE(granules_of_queries) {
  const auto granule = [](const std::optional<Mask>& m, std::int64_t q_len, std::int64_t k_len,
                          std::span<const scalar::Table> tables = {}) {
    return (m ? Tiles(m->view(), m->root(), {.q_len = q_len, .k_len = k_len}, tables)
              : Tiles(scalar::View{}, -1, {.q_len = q_len, .k_len = k_len}))
        .query_granule();
  };
  BOOST_TEST(granule({}, 100, 100) == 0);
  BOOST_TEST(granule(block_window(64, 1, 1), 300, 300) == 64);
  BOOST_TEST(granule(block_window(64, 1, 1) | global_prefix(96), 300, 300) == 32);
  BOOST_TEST(granule(big_bird({.block = 64}), 4096, 4096) == 64);
  BOOST_TEST(granule(big_bird({.block = 64}), 4000, 4000) == 64);  // the last block is short
  BOOST_TEST(granule(block_window(64, 1, 1), 300, 340) == 8);      // aligned at the last key: 40 before a block
  BOOST_TEST(granule(local_chunks(48, 1), 300, 300) == 48);
  BOOST_TEST(granule(causal, 300, 300) == 1);
  BOOST_TEST(granule(causal & block_window(64, 1, 0), 300, 300) == 1);
  BigBird random(512, 64, {.per_row = 2});
  BOOST_TEST(granule(random.mask(), 512, 512, random.tables()) == 64);
  // A mask tensor: one row for all queries, or one for each.
  std::vector<std::uint8_t> kept(300, 1);
  const std::int64_t row[] = {1, 300}, column[] = {300, 1};
  const auto with = [&](const std::int64_t(&shape)[2]) {
    const Mask m = block_window(64, 1, 1);
    return Tiles(m.view(), m.root(), {.q_len = 300, .k_len = 300}, {}, dense_view(kept.data(), boolean, shape))
        .query_granule();
  };
  BOOST_TEST(with(row) == 64);
  BOOST_TEST(with(column) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

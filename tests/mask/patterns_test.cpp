// Patterns of the literature, counted against loops over their definitions; block lists; and what planning them costs.

#include <treadle/graph/mask/patterns.hpp>
#include <treadle/graph/mask/random_blocks.hpp>
#include <treadle/graph/mask/tiles.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>

using namespace treadle;
using mask::Mask;
using mask::RandomBlocks;
using mask::Tiles;

namespace {

using Keep = std::function<bool(std::int64_t h, std::int64_t q, std::int64_t k)>;

/// Every (head, query, key) by its bits.
void same(const Mask& m, std::int64_t heads, std::int64_t n, const Keep& keep,
          std::span<const scalar::Table> tables = {}) {
  Tiles tiles(m.view(), m.root(), {.heads = heads, .q_len = n, .k_len = n}, tables);
  std::vector<std::uint64_t> workspace(tiles.workspace_bytes() / 8 + 1);
  std::vector<char> shown(static_cast<std::size_t>(heads * n * n), 0);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t q0 = 0; q0 < n; q0 += 48) {
      const std::int64_t q1 = std::min(q0 + 48, n);
      Tiles::Stream s = tiles.stream(0, h, q0, q1, 128, workspace.data());
      for (mask::Tile t; s.next(t);)
        for (std::int64_t q = q0; q < q1; ++q)
          for (std::int64_t k = t.k0; k < t.k1; ++k)
            shown[static_cast<std::size_t>((h * n + q) * n + k)] =
                t.full || (t.bits[k - t.k0] >> (q - q0) & 1u) != 0 ? 1 : 0;
    }
  std::int64_t wrong = 0;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t q = 0; q < n; ++q)
      for (std::int64_t k = 0; k < n; ++k)
        wrong += (shown[static_cast<std::size_t>((h * n + q) * n + k)] != 0) != keep(h, q, k) ? 1 : 0;
  BOOST_TEST(wrong == 0);
}

mask::Counts count(const Mask& m, std::int64_t n, std::span<const scalar::Table> tables = {}) {
  return Tiles(m.view(), m.root(), {.q_len = n, .k_len = n}, tables).count_all(64, 256);
}

constexpr std::int64_t lengths[] = {1, 7, 48, 65, 130};

}  // namespace

BOOST_AUTO_TEST_SUITE(patterns)

BOOST_AUTO_TEST_CASE(chunks_with_look_back) {
  for (const std::int64_t n : lengths)
    for (const std::int64_t chunk : {1, 5, 16})
      for (const std::int64_t back : {0, 2})
        same(local_chunks(chunk, back), 1, n,
             [&](auto, auto q, auto k) { return k / chunk <= q / chunk && k / chunk >= q / chunk - back; });
}

BOOST_AUTO_TEST_CASE(sparse_transformers) {
  for (const std::int64_t n : lengths)
    for (const std::int64_t stride : {1, 4, 11}) {
      const auto near = [&](auto q, auto k) { return k >= std::max<std::int64_t>(0, q - stride); };
      const auto far = [&](auto q, auto k) { return (q - k) % stride == 0; };
      same(sparse_transformer_strided(stride), 1, n,
           [&](auto, auto q, auto k) { return k <= q && (near(q, k) || far(q, k)); });
      same(sparse_transformer_strided(stride, mask::Heads::alternating), 3, n,
           [&](auto h, auto q, auto k) { return k <= q && (h % 2 == 0 ? near(q, k) : far(q, k)); });
      for (const std::int64_t summary : {std::int64_t{1}, stride}) {
        const auto own = [&](auto q, auto k) { return q / stride == k / stride; };
        const auto last = [&](auto k) { return k % stride >= stride - summary; };
        same(sparse_transformer_fixed(stride, summary), 1, n,
             [&](auto, auto q, auto k) { return k <= q && (own(q, k) || last(k)); });
        same(sparse_transformer_fixed(stride, summary, mask::Heads::alternating), 2, n,
             [&](auto h, auto q, auto k) { return k <= q && (h % 2 == 0 ? own(q, k) : last(k)); });
      }
    }
}

BOOST_AUTO_TEST_CASE(lists_of_blocks_as_given) {
  // Equal entries count once; -1 and numbers that are no block stand for none.
  const std::int64_t block = 8, n = 61, blocks = 8;
  std::vector<std::int32_t> list;
  for (std::int64_t i = 0; i < 2 * blocks; ++i)
    for (const std::int64_t e :
         {i * 5 % blocks, i % 3 == 0 ? i * 5 % blocks : std::int64_t{-1}, i % 4 == 0 ? blocks : i / 2})
      list.push_back(static_cast<std::int32_t>(e));
  const auto listed = [&](std::int64_t row, std::int64_t k) {
    return std::count(list.begin() + row * 3, list.begin() + row * 3 + 3, k / block) > 0;
  };
  const std::int64_t one[] = {blocks, 3}, two[] = {2 * blocks, 3};
  const scalar::Table shared[] = {{"list", dense_view(list.data(), i32, one)}},
                      per_head[] = {{"list", dense_view(list.data(), i32, two)}};
  same(block_list("list", block, 3), 2, n, [&](auto, auto q, auto k) { return listed(q / block, k); }, shared);
  same(
      block_list("list", block, 3, mask::Blocks::per_head), 2, n,
      [&](auto h, auto q, auto k) { return listed(h * blocks + q / block, k); }, per_head);
}

BOOST_AUTO_TEST_CASE(random_lists_are_the_random_tables) {
  for (const std::int64_t blocks : {1, 3, 9, 40})
    for (const bool is_causal : {false, true}) {
      const RandomBlocks random{.per_row = 3, .first = 1, .last = 1, .causal = is_causal, .seed = 5};
      const std::vector<std::int32_t> list = random.list(blocks, blocks);
      const std::vector<std::uint8_t> table = random.table(blocks, blocks);
      std::vector<std::uint8_t> from_list(table.size(), 0);
      for (std::size_t i = 0; i < list.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / 3;
        if (list[i] < 0) continue;
        BOOST_TEST(list[i] >= 1);
        BOOST_TEST(list[i] < blocks - 1);
        BOOST_TEST(std::abs(list[i] - row) > 1);
        from_list[static_cast<std::size_t>(row * blocks + list[i])] = 1;
      }
      BOOST_TEST(from_list == table, boost::test_tools::per_element());
      if (blocks == 40 && !is_causal)  // rows in the middle have all three, and no block twice
        BOOST_TEST(std::count(table.begin() + 20 * 40, table.begin() + 21 * 40, 1) == 3);
    }
  const RandomBlocks random{.seed = 3};
  const std::vector<std::int32_t> heads = random.list_per_head(2, 20, 20),
                                  second = RandomBlocks{.seed = 4}.list(20, 20);
  BOOST_TEST(std::vector<std::int32_t>(heads.begin() + 60, heads.end()) == second, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(big_bird_blocks) {
  constexpr std::int64_t block = 8, heads = 2;
  for (const std::int64_t n : {1, 8, 63, 200}) {
    const std::int64_t blocks = (n + block - 1) / block;
    std::vector<std::int32_t> list =
        RandomBlocks{.per_row = 3, .first = 1, .last = 1}.list_per_head(heads, blocks, blocks);
    const std::int64_t shape[] = {heads * blocks, 3};
    const scalar::Table tables[] = {{"random", dense_view(list.data(), i32, shape)}};
    const Mask m = big_bird({.block = block, .random = 3, .list = "random", .rows = mask::Blocks::per_head});
    same(
        m, heads, n,
        [&](auto h, auto q, auto k) {
          const std::int64_t i = q / block, j = k / block, row = (h * blocks + i) * 3;
          return std::abs(i - j) <= 1 || i == 0 || j == 0 || i == blocks - 1 || j == blocks - 1 ||
                 std::count(list.begin() + row, list.begin() + row + 3, j) > 0;
        },
        tables);
  }
}

BOOST_AUTO_TEST_CASE(mistakes_say_what_would_be_right) {
  const auto message = [](auto make) {
    try {
      make();
    } catch (const char* text) {
      return std::string(text);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  BOOST_TEST(message([] { return local_chunks(0); }) == "the chunk of local chunks is 1 or more");
  BOOST_TEST(message([] { return local_chunks(4, -1); }) == "local chunks look back 0 or more chunks");
  BOOST_TEST(message([] { return sparse_transformer_strided(0); }) ==
             "the stride of a sparse transformer is 1 or more");
  BOOST_TEST(message([] { return sparse_transformer_fixed(8, 9); }) ==
             "the summary of a fixed pattern has 1 to stride keys of each block");
  BOOST_TEST(message([] { return big_bird({.window = 2}); }) == "BigBird's window is an odd number of blocks");
  BOOST_TEST(message([] { return big_bird({.random = 2}); }) == "BigBird's random blocks need the name of their list");
}

// Pairs that a mask keeps, tiles that kernels see, and what finding them costs, from a thousand to a million tokens.
BOOST_AUTO_TEST_CASE(planning_is_linear) {
  const auto grows_linearly = [](const char* what, const Mask& m,
                                 const std::function<std::vector<std::int32_t>(std::int64_t)>& list) {
    double per_token[3][3];
    int i = 0;
    for (const std::int64_t n : {4'096, 65'536, 1'048'576}) {
      std::vector<std::int32_t> numbers = list ? list(n) : std::vector<std::int32_t>();
      const std::int64_t shape[] = {static_cast<std::int64_t>(numbers.size()) / 3, 3};
      const scalar::Table tables[] = {{"random", dense_view(numbers.data(), i32, shape)}};
      const mask::Counts c =
          count(m, n, list ? std::span<const scalar::Table>(tables) : std::span<const scalar::Table>());
      per_token[0][i] = static_cast<double>(c.useful) / static_cast<double>(n);
      per_token[1][i] = static_cast<double>(c.executed) / static_cast<double>(n);
      per_token[2][i++] = static_cast<double>(c.evaluations) / static_cast<double>(n);
    }
    BOOST_TEST_CONTEXT(what) {
      for (const auto& row : per_token) {
        // Sixteen times the tokens: a square would give 16, finding blocks by halving adds a logarithm.
        BOOST_TEST(row[2] < 2 * row[1]);
        BOOST_TEST(row[1] < 2 * row[0]);
      }
    }
  };
  grows_linearly("chunks", causal & local_chunks(64, 1), {});
  grows_linearly("BigBird without global rows", block_window(64, 1, 1) | block_list("random", 64, 3),
                 [](std::int64_t n) { return RandomBlocks{.first = 0}.list(n / 64, n / 64); });
}

BOOST_AUTO_TEST_SUITE_END()

// Tiles against brute force: class, bits and counts are exact for every mask.

#include <scalar/random_expression.hpp>

#include <treadle/graph/mask/conventions.hpp>
#include <treadle/graph/mask/masks.hpp>
#include <treadle/graph/mask/tiles.hpp>
#include <treadle/graph/scalar/print.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <functional>

using namespace treadle;
using namespace treadle::test;
using mask::Mask;
using mask::Tile;
using mask::Tiles;

namespace {

using Random = std::mt19937;
using Allowed = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)>;

std::int64_t below(Random& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

/// Walks every strip and compares every element; returns a message, empty if all is right.
std::string check(const Tiles& tiles, std::int64_t strip, std::int64_t block, const Allowed& allowed) {
  const Extents& e = tiles.extents();
  std::vector<std::uint64_t> workspace(tiles.workspace_bytes() / 8 + 1, 0xabababababababab);
  mask::Counts total;
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t h = 0; h < e.heads; ++h) {
      std::int64_t useful = 0;
      for (std::int64_t q0 = 0; q0 < e.q_len; q0 += strip) {
        const std::int64_t q1 = std::min(e.q_len, q0 + strip);
        std::vector<std::uint64_t> seen(static_cast<std::size_t>(e.k_len), 0);
        const std::uint64_t all = q1 - q0 == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (q1 - q0)) - 1;
        Tiles::Stream s = tiles.stream(b, h, q0, q1, block, workspace.data());
        std::int64_t end = 0;
        for (Tile t; s.next(t);) {
          if (t.k0 < end || t.k1 <= t.k0 || t.k1 > e.k_len || t.k1 - t.k0 > block)
            return "tiles out of order or too large";
          if (block % 16 == 0 && t.k0 % 16 != 0) return "a tile is not aligned";
          if (t.full != (t.bits == nullptr)) return "a full tile with bits";
          end = t.k1;
          std::uint64_t every = all, any = 0;
          for (std::int64_t k = t.k0; k < t.k1; ++k) {
            const std::uint64_t bits = t.full ? all : t.bits[k - t.k0];
            seen[static_cast<std::size_t>(k)] = bits;
            every &= bits;
            any |= bits;
          }
          if (!t.full && every == all) return "a partial tile is full";
          if (any == 0) return "an empty tile";
        }
        for (std::int64_t k = 0; k < e.k_len; ++k) {
          for (std::int64_t q = q0; q < q1; ++q)
            if (((seen[static_cast<std::size_t>(k)] >> (q - q0)) & 1) != (allowed(b, h, q, k) ? 1u : 0u))
              return "wrong at b " + std::to_string(b) + " h " + std::to_string(h) + " q " + std::to_string(q) + " k " +
                     std::to_string(k);
          if (seen[static_cast<std::size_t>(k)] & ~all) return "bits past the strip";
          useful += std::popcount(seen[static_cast<std::size_t>(k)]);
        }
      }
      const mask::Counts c = tiles.count(b, h, strip, block);
      if (c.useful != useful || c.executed < useful) return "wrong count";
      total += c;
    }
  const std::int64_t granule = tiles.query_granule();
  std::vector<bool> before, row;
  for (std::int64_t q = 0; q < e.q_len; ++q) {
    row.clear();
    for (std::int64_t k = 0; k < e.k_len; ++k) row.push_back(allowed(0, 0, q, k));
    if (q > 0 && (granule == 0 || q % granule != 0) && row != before)
      return "queries " + std::to_string(q - 1) + " and " + std::to_string(q) + " of a granule of " +
             std::to_string(granule) + " differ";
    before = row;
  }
  const mask::Counts all = tiles.count_all(strip, block);
  if (all.useful != total.useful || all.executed != total.executed) return "wrong total";
  return {};
}

Bindings point(const Extents& e, std::span<const Table> tables, std::int64_t b, std::int64_t h, std::int64_t q,
               std::int64_t k) {
  return {
      .b = b, .h = h, .q = q, .k = k, .q_len = e.q_len, .k_len = e.k_len, .iteration = e.iteration, .tables = tables};
}

std::string check(const Mask& m, const Extents& e, std::span<const Table> tables, std::int64_t strip,
                  std::int64_t block) {
  const Tiles tiles(m.view(), m.root(), e, tables);
  Evaluator evaluator(m.view(), m.root());
  return check(tiles, strip, block,
               [&](auto b, auto h, auto q, auto k) { return evaluator.holds(point(e, tables, b, h, q, k)); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tiles)

BOOST_AUTO_TEST_CASE(random_masks_are_exact) {
  Random random(11);
  for (int trial = 0; trial < 1500; ++trial) {
    const Extents e{.batch = 2, .heads = 3, .q_len = below(random, 100), .k_len = below(random, 150), .iteration = 1};
    const Tables tables(2, std::max<std::int64_t>({e.q_len, e.k_len, 1}), random);
    Generator<Random> generate(random);
    const TreePtr tree = generate.condition(4);
    Pool pool;
    const int root = build_tree(pool, *tree);
    const Tiles t(pool, root, e, tables.tables);
    Evaluator evaluator(pool, root);
    const std::int64_t strip = 1 + below(random, 64),
                       block = trial % 2 ? 1 + below(random, 100) : 16 * (1 + below(random, 4));
    const std::string wrong = check(t, strip, block, [&](auto b, auto h, auto q, auto k) {
      return evaluator.holds(point(e, tables.tables, b, h, q, k));
    });
    BOOST_REQUIRE_MESSAGE(wrong.empty(), wrong << ": " << print(pool, root));
  }
}

BOOST_AUTO_TEST_CASE(built_in_masks_are_exact) {
  Random random(12);
  const std::vector<Mask> masks = {causal,
                                   causal(mask::Alignment::top_left),
                                   window(5, 3),
                                   window(-1, 2),
                                   window(7, -1),
                                   window(0, 0),
                                   causal & window(20, 0),
                                   dilated(window(30, 0), 3),
                                   strided(7),
                                   causal | prefix(9),
                                   window(4, 4) | global_tokens({0, 5, 6, 7, 40}),
                                   window(4, 4) | global_tokens({3}, false),
                                   window(2, 2) | global_tokens("flag"),
                                   documents("doc"),
                                   causal & documents("doc"),
                                   documents("doc2", mask::Rows::per_batch),
                                   cumulative_lengths("cu"),
                                   cumulative_lengths("cu2", mask::Rows::per_batch),
                                   cumulative_lengths("cu", "cu3"),
                                   cumulative_lengths("cu", "cu3", -1, 0),
                                   cumulative_lengths("cu", "cu3", 3, 2),
                                   block_list("list", 8, 3),
                                   block_list("list", 8, 3, mask::Blocks::per_head),
                                   block_table("heads_grid", 8, mask::Blocks::per_head),
                                   window(2, 2) | global_tokens("flag2", mask::Rows::per_batch),
                                   key_lengths("lengths"),
                                   causal & key_lengths("lengths"),
                                   block_table("grid", 8),
                                   causal & block_table("grid", 8),
                                   block_window(8, 1, 0),
                                   block_window(16, 2, 1),
                                   block_window(5, -1, 0),
                                   block_window(1, 0, -1),
                                   causal & block_window(24, 1, 0),
                                   block_window(24, 1, 0, mask::Alignment::top_left),
                                   global_prefix(9),
                                   global_prefix(9, false),
                                   block_window(8, 1, 1) | global_prefix(16) | block_table("grid", 8),
                                   ~causal,
                                   ~(causal & documents("doc")),
                                   mask_mod([](auto, auto h, auto q, auto k) { return (q - k) % 4 == h; })};
  for (std::size_t i = 0; i < masks.size(); ++i)
    for (int trial = 0; trial < 12; ++trial) {
      const std::int64_t q_len = 1 + below(random, 130);
      const Extents e{.batch = 2, .heads = 2, .q_len = q_len, .k_len = trial % 2 ? q_len : 1 + below(random, 200)};
      const Tables tables(2, std::max(e.q_len, e.k_len), random);
      const std::string wrong = check(masks[i], e, tables.tables, trial % 3 ? 64 : 24, trial % 4 ? 64 : 256);
      BOOST_REQUIRE_MESSAGE(wrong.empty(), wrong << ": " << print(masks[i].view(), masks[i].root()));
    }
}

BOOST_AUTO_TEST_CASE(conventions_for_unequal_lengths) {
  const auto keys_of = [](const Mask& m, std::int64_t q, std::int64_t q_len, std::int64_t k_len) {
    const Tiles t(m.view(), m.root(), {.q_len = q_len, .k_len = k_len});
    std::vector<std::uint64_t> workspace(t.workspace_bytes() / 8);
    Tiles::Stream s = t.stream(0, 0, q, q + 1, 256, workspace.data());
    std::string keys;
    for (Tile tile; s.next(tile);)
      for (std::int64_t k = tile.k0; k < tile.k1; ++k)
        if (tile.full || (tile.bits[k - tile.k0] & 1)) keys += static_cast<char>('0' + k);
    return keys;
  };
  const Mask top_left = causal(mask::Alignment::top_left);
  // Hugging Face and FlashAttention count from the last key, attention-gym from the first.
  using namespace conventions;
  BOOST_TEST(keys_of(hugging_face_sliding_window(3), 6, 9, 9) == "456");
  BOOST_TEST(keys_of(hugging_face_sliding_window(1), 6, 9, 9) == "6");
  BOOST_TEST(keys_of(mistral_reference_window(3), 6, 9, 9) == "3456");
  BOOST_TEST(keys_of(longformer_attention_window(4), 6, 10, 10) == "45678");
  BOOST_TEST(keys_of(flash_attention_window(2, 1), 0, 2, 9) == "5678");
  BOOST_TEST(keys_of(flash_attention_window(-1, 0), 0, 2, 9) == keys_of(causal, 0, 2, 9));
  BOOST_TEST(keys_of(attention_gym_sliding_window(2), 1, 2, 9) == "01");
  BOOST_TEST(keys_of(attention_gym_sliding_window(2), 6, 9, 9) == "456");
  BOOST_TEST(keys_of(causal, 0, 2, 5) == "0123");
  BOOST_TEST(keys_of(causal, 1, 2, 5) == "01234");
  BOOST_TEST(keys_of(top_left, 0, 2, 5) == "0");
  BOOST_TEST(keys_of(top_left, 1, 2, 5) == "01");
  for (int q = 0; q < 3; ++q) BOOST_TEST(keys_of(causal, q, 5, 2) == "");  // rows that see nothing
  BOOST_TEST(keys_of(causal, 3, 5, 2) == "0");
  BOOST_TEST(keys_of(top_left, 1, 5, 2) == "01");
  BOOST_TEST(keys_of(top_left, 4, 5, 2) == "01");
  BOOST_TEST(keys_of(window(1, 2), 3, 7, 7) == "2345");
  BOOST_TEST(keys_of(window(2, 0), 4, 6, 6) == "234");
  BOOST_TEST(keys_of(window(100, 0), 4, 6, 6) == keys_of(causal, 4, 6, 6));
  BOOST_TEST(keys_of(window(1, 1) | global_tokens({0, 4}), 4, 9, 9) == "012345678");
  BOOST_TEST(keys_of(window(1, 1) | global_tokens({0, 4}), 7, 9, 9) == "04678");
}

BOOST_AUTO_TEST_CASE(dense_masks_join) {
  Random random(13);
  for (int trial = 0; trial < 200; ++trial) {
    const Extents e{.batch = 2, .heads = 2, .q_len = 1 + below(random, 90), .k_len = 1 + below(random, 120)};
    std::vector<std::uint8_t> data(static_cast<std::size_t>(4 * e.q_len * e.k_len));
    const std::int64_t density = 1 + below(random, 12);
    for (auto& d : data) d = below(random, density) != 0 || trial % 7 == 0;
    TensorView dense;
    dense.data = data.data();
    dense.dtype = DType::boolean;
    dense.rank = 4;
    dense.shape = {trial & 1 ? 2 : 1, trial & 2 ? 2 : 1, trial & 4 ? e.q_len : 1, e.k_len};
    dense.strides = {2 * e.q_len * e.k_len, e.q_len * e.k_len, e.k_len, 1};
    const Mask m = causal & window(40, 0);
    const bool both = trial % 3 != 0;
    const Tiles t(m.view(), both ? m.root() : -1, e, {}, dense);
    Evaluator evaluator(m.view(), m.root());
    const std::string wrong =
        check(t, 1 + below(random, 64), 16 * (1 + below(random, 8)), [&](auto b, auto h, auto q, auto k) {
          const std::int64_t at = (trial & 1 ? b : 0) * dense.strides[0] + (trial & 2 ? h : 0) * dense.strides[1] +
                                  (trial & 4 ? q : 0) * dense.strides[2] + k;
          return data[static_cast<std::size_t>(at)] != 0 && (!both || evaluator.holds(point(e, {}, b, h, q, k)));
        });
    BOOST_REQUIRE_MESSAGE(wrong.empty(), wrong);
  }
}

/// Runs of 16 keys that nobody sees are in no tile, also in the middle of a block.
BOOST_AUTO_TEST_CASE(tiles_hold_what_somebody_sees) {
  const Mask last_of_blocks = mask_mod([](auto, auto, auto, auto k) { return k % 128 >= 112; });
  const Tiles t(last_of_blocks.view(), last_of_blocks.root(), {.q_len = 96, .k_len = 1024});
  std::vector<std::uint64_t> workspace(t.workspace_bytes() / 8);
  Tiles::Stream s = t.stream(0, 0, 48, 96, 192, workspace.data());
  std::string tiles;
  for (Tile tile; s.next(tile);) {
    BOOST_TEST(tile.full);
    tiles += std::to_string(tile.k0) + "-" + std::to_string(tile.k1) + " ";
  }
  BOOST_TEST(tiles == "112-128 240-256 368-384 496-512 624-640 752-768 880-896 1008-1024 ");
  const mask::Counts c = t.count(0, 0, 48, 192);
  BOOST_TEST(c.executed == c.useful);
  BOOST_TEST(c.useful == 96 * 128);
}

BOOST_AUTO_TEST_CASE(nothing_given_sees_everything) {
  const Tiles none;
  BOOST_TEST(none.count_all(64, 256).useful == 0);
  const Tiles all({}, -1, {.batch = 2, .heads = 3, .q_len = 70, .k_len = 300});
  const mask::Counts c = all.count_all(64, 128);
  BOOST_TEST(c.useful == 2 * 3 * 70 * 300);
  BOOST_TEST(c.executed == c.useful);
}

BOOST_AUTO_TEST_CASE(long_lists_of_global_tokens) {
  std::vector<std::int64_t> tokens;
  for (int i = 0; i < 150; ++i) tokens.push_back(i * 7 % 1009);
  Pool pool;
  const int root = mask::build::global_tokens(pool, tokens);
  const Extents e{.q_len = 1009, .k_len = 1009};
  const Tiles t(pool, root, e);
  BOOST_TEST(t.count_all(64, 256).useful == 1009 * 1009 - (1009 - 150) * (1009 - 150));
}

BOOST_AUTO_TEST_CASE(positions_beyond_32_bits) {
  // k·2^20 leaves 32 bits: the lanes widen, the answer does not change.
  const Mask m =
      mask_mod([](auto, auto, auto q, auto k) { return k * (1 << 20) * 64 <= q * (1 << 20) * 64 - (1 << 30); });
  const Extents e{.q_len = 200, .k_len = 200};
  const Tiles t(m.view(), m.root(), e);
  BOOST_TEST(t.program()->wide);
  BOOST_TEST(check(m, e, {}, 64, 64) == "");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  const Mask m = documents("doc");
  const Extents e{.q_len = 4, .k_len = 4};
  std::vector<float> wrong(4);
  const std::int64_t four[] = {4}, square[] = {2, 2};
  const auto refuses = [&](std::vector<Table> tables, const std::string& sentence) {
    BOOST_CHECK_EXCEPTION(Tiles(m.view(), m.root(), e, tables), std::invalid_argument, [&](const auto& x) {
      BOOST_TEST(x.what() == sentence);
      return true;
    });
  };
  const auto sentence_of = [](auto make) -> std::string {
    try {
      make();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string window_rule = "a window is (left, right), each 0 or more, or -1 for no bound";
  BOOST_TEST(sentence_of([] { return window(-2, 0); }) == window_rule);
  BOOST_TEST(sentence_of([] { return cumulative_lengths("a", "b", 0, -2); }) == window_rule);
  BOOST_TEST(sentence_of([] { return conventions::flash_attention_window(0, -3); }) == window_rule);
  BOOST_TEST(sentence_of([] { return conventions::hugging_face_sliding_window(0); }) ==
             "a sliding window has 1 key or more");
  BOOST_TEST(sentence_of([] { return conventions::mistral_reference_window(-1); }) == "a window size is 0 or more");
  BOOST_TEST(sentence_of([] { return conventions::longformer_attention_window(5); }) ==
             "Longformer's attention_window is even: half of it on either side");
  BOOST_TEST(sentence_of([] { return block_list("t", 8, 0); }) == "a block list has 1 block or more in a row");
  BOOST_TEST(sentence_of([] { return strided(0); }) == "the step of a dilated or strided mask is 1 or more");
  std::vector<std::int32_t> falls = {0, 3, 2, 4};
  const Mask packed = cumulative_lengths("cu");
  BOOST_TEST(sentence_of([&] {
               const Table cu[] = {{"cu", dense_view(falls.data(), i32, four)}};
               return Tiles(packed.view(), packed.root(), e, cu);
             }) == "table 'cu' does not ascend; searchsorted needs entries in ascending order");
  BOOST_TEST(sentence_of([&] {
               scalar::Pool pool;
               const int sum = scalar::build::sum(
                   pool,
                   scalar::build::feature_of(pool, scalar::Op::q, scalar::build::leaf(pool, scalar::Op::feature)));
               const int root = scalar::build::comparison(pool, scalar::Op::less, sum, pool.constant(0.0));
               return Tiles(pool, root, e);
             }) == "a mask has a sum over features; write it in a score function");
  refuses({}, "table 'doc' is not bound");
  refuses({{"doc", dense_view(wrong.data(), f32, four)}}, "table 'doc' is f32; lookup<i32> reads i32 or bool");
  refuses({{"doc", dense_view(wrong.data(), i32, square)}}, "table 'doc' has rank 2; the lookup has 1 indices");
}

BOOST_AUTO_TEST_SUITE_END()

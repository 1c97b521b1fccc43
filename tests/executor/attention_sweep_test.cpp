// Attention over every head size, grouping, broadcast of the bias and pair of lengths, each against float64; the
// layers' options.

#include "op_check.hpp"

#include <treadle/graph/mask/patterns.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

const DimSpec keys = dim("keys");

/// On one thread of every ISA: what a sweep over many shapes has time for.
void check_quickly(const Graph& g, const Lengths& dims, double tolerance = 1e-5) {
  BOOST_REQUIRE(!g.error);
  const Results want = oracle(g, {}, dims, 31);
  for (const std::string& isa : isas()) BOOST_TEST_CONTEXT(isa) {
      BOOST_TEST(difference(run(g, {}, dims, {.backend = "simd", .isa = isa}, 31), want) < tolerance);
    }
}

Graph dense(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim, std::int64_t values,
            std::optional<Mask> mask = {}) {
  Builder b;
  const Node q = b.input("q", f32, {2, heads, n, dim}), k = b.input("k", f32, {2, kv_heads, keys, dim}),
             v = b.input("v", f32, {2, kv_heads, keys, values});
  const Node y = attention(q, k, v, {.mask = mask});
  b.output("y", y);
  b.output("lse", attention_logsumexp(y));
  return b.finish();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_sweep)

BOOST_AUTO_TEST_CASE(every_head_size) {
  for (std::int64_t d = 1; d <= 512; ++d)
    BOOST_TEST_CONTEXT("head size " << d) check_quickly(dense(1, 1, d, 1 + d * 7 % 61), {{"n", 2}, {"keys", 3}});
  for (const std::int64_t e : {1, 2, 31, 64, 129, 300, 512})
    BOOST_TEST_CONTEXT("value width " << e) check_quickly(dense(2, 1, 16, e), {{"n", 9}, {"keys", 11}});
}

BOOST_AUTO_TEST_CASE(every_grouping_and_pair_of_lengths) {
  const std::int64_t groups[][2] = {{1, 1}, {2, 1}, {3, 1}, {4, 2}, {6, 2}, {6, 3}, {8, 1}, {8, 8}, {12, 4}, {5, 5}};
  for (const auto& [heads, kv_heads] : groups) BOOST_TEST_CONTEXT(heads << " heads on " << kv_heads) {
      check_quickly(dense(heads, kv_heads, 8, 4), {{"n", 7}, {"keys", 5}});
      check_quickly(dense(heads, kv_heads, 8, 4, causal), {{"n", 5}, {"keys", 18}});
    }
  const Graph all = dense(2, 1, 8, 8), masked = dense(2, 1, 8, 8, causal & window(6, 0));
  for (const std::int64_t q : {0, 1, 4, 17, 49})
    for (const std::int64_t k : {0, 1, 3, 16, 33, 130}) BOOST_TEST_CONTEXT(q << " queries, " << k << " keys") {
        check_quickly(all, {{"n", q}, {"keys", k}});
        check_quickly(masked, {{"n", q}, {"keys", k}});
      }
}

/// Queries that see the same keys come in blocks, so strips are cut at them (four vectors with AVX-512).
BOOST_AUTO_TEST_CASE(masks_of_blocks) {
  const Mask blocks = block_window(64, 1, 1), bird = big_bird({.block = 64});
  for (const std::int64_t length : {1, 48, 63, 64, 65, 129, 200, 333}) BOOST_TEST_CONTEXT(length << " tokens") {
      check_quickly(dense(2, 1, 20, 13, blocks), {{"n", length}, {"keys", length}});
      check_quickly(dense(5, 5, 8, 40, bird), {{"n", length}, {"keys", length}});
      check_quickly(dense(2, 1, 8, 8, blocks), {{"n", length}, {"keys", length + 64}});
    }
  Builder b;
  const Node q = b.input("q", f32, {1, 2, n, 8}), k = b.input("k", f32, {1, 2, n, 8}),
             v = b.input("v", f32, {1, 2, n, 8});
  b.output("softcap", attention(q, k, v, {.mask = bird, .softcap = 3.0}));
  b.output("alibi", attention(q, k, v, {.mask = blocks, .score = alibi(2)}));
  const Node y = attention(q, k, v, {.mask = bird});
  b.output("entropy", attention_entropy(y));
  b.output("column sums", attention_column_sums(y));
  const Graph g = b.finish();
  for (const std::int64_t length : {64, 150, 200}) check_quickly(g, {{"n", length}});
}

/// A decoder's step over many keys, which are cut into parts of 1024.
BOOST_AUTO_TEST_CASE(few_queries_and_many_keys) {
  const std::optional<Mask> masks[] = {std::nullopt, causal, window(100, 0), window(1500, 0) & strided(3)};
  for (const std::int64_t k : {1023, 1024, 1025, 2048, 3000}) {
    BOOST_TEST_CONTEXT(k << " keys") {
      for (const std::optional<Mask>& mask : masks) check_quickly(dense(4, 2, 20, 13, mask), {{"n", 3}, {"keys", k}});
      // All threads, and one, and the backends: the parts are the same.
      const Graph g = dense(2, 1, 8, 8, causal);
      const Results one = run(g, {}, {{"n", 1}, {"keys", k}}, {.backend = "simd"}, 7);
      for (const int threads : {1, 2, 5})
        BOOST_TEST(difference(run(g, {}, {{"n", 1}, {"keys", k}}, {.backend = "tbb", .threads = threads}, 7), one) ==
                   0);
    }
  }
  Builder b;
  const Node q = b.input("q", f32, {2, 2, 1, 8}), k = b.input("k", f32, {2, 2, keys, 8}),
             v = b.input("v", f32, {2, 2, keys, 8});
  const Node y = attention(q, k, v, {.sink = b.input("sink", f32, {2})});
  b.output("y", y);
  b.output("lse", attention_logsumexp(y));
  check_quickly(b.finish(), {{"keys", 2500}});
}

BOOST_AUTO_TEST_CASE(every_broadcast_of_a_bias) {
  const DimSpec full[] = {2, 3, n, keys};
  for (int rank = 1; rank <= 4; ++rank)
    for (int bits = 0; bits < 1 << rank; ++bits) {
      Builder b;
      const Node q = b.input("q", f32, {2, 3, n, 8}), k = b.input("k", f32, {2, 1, keys, 8}),
                 v = b.input("v", f32, {2, 1, keys, 4});
      const auto d = [&](int i) { return (bits >> i & 1) != 0 ? full[4 - rank + i] : DimSpec(1); };
      const Node bias = rank == 1   ? b.input("bias", f32, {d(0)})
                        : rank == 2 ? b.input("bias", f32, {d(0), d(1)})
                        : rank == 3 ? b.input("bias", f32, {d(0), d(1), d(2)})
                                    : b.input("bias", f32, {d(0), d(1), d(2), d(3)});
      b.output("y", attention(q, k, v, {.mask = bits % 2 ? std::optional<Mask>(causal) : std::nullopt, .bias = bias}));
      // Transposed, the bias of a pair of lengths has another stride order.
      if (rank == 2 && bits == 3)
        b.output("turned", attention(q, k, v, {.bias = transpose(b.input("turn", f32, {keys, n}))}));
      const Graph g = b.finish();
      for (const auto& [nq, nk] : {std::pair{5, 7}, {18, 18}, {50, 33}})
        BOOST_TEST_CONTEXT("rank " << rank << " bits " << bits << ", " << nq << " x " << nk)
      check_quickly(g, {{"n", nq}, {"keys", nk}});
    }
}

BOOST_AUTO_TEST_CASE(options_of_the_layers) {
  const auto layer = [](SelfAttentionOptions o) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 24});
    if (o.heads == 6) o.score_bias = t5_bias("relative", b, n, n, {.heads = 6, .buckets = 8, .max_distance = 20});
    b.output("y", self_attention("attn", x, o));
    return b.finish();
  };
  const SelfAttentionOptions options[] = {
      {.heads = 4, .qk_norm = QkNormOptions{}},
      {.heads = 4, .kv_heads = 2, .mask = causal, .rope = RopeOptions{}, .qk_norm = QkNormOptions{qk_norm_kind::layer}},
      {.heads = 4, .qk_norm = QkNormOptions{qk_norm_kind::l2}, .sink = true},
      {.heads = 4, .mask = causal, .rope = RopeOptions{.scaling = linear_scaling(4)}, .score = alibi(4), .scale = 0.3},
      {.heads = 3, .head_dim = 5, .softcap = 3.0, .sink = true, .value_dim = 11},
      {.heads = 6, .scale = 1.0}};
  for (const SelfAttentionOptions& o : options) {
    const Graph g = layer(o);
    BOOST_REQUIRE(!g.error);
    BOOST_TEST(g.count(op::attention) == 1);
    for (const std::int64_t length : {1, 3, 20}) {
      check(g, {{"n", length}}, 2e-5);
      check(optimise(g), {{"n", length}}, 2e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(normalised_queries_and_keys_do_not_feel_their_length) {
  for (const qk_norm_kind kind : {qk_norm_kind::rms, qk_norm_kind::layer, qk_norm_kind::l2}) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 8}), k = b.input("k", f32, {1, 2, n, 8}),
               v = b.input("v", f32, {1, 2, n, 8});
    b.push_scope("a");
    const NormalisedHeads one = qk_norm(q, k, {kind, 0});
    b.pop_scope();
    b.push_scope("b");
    const NormalisedHeads two = qk_norm(scale(q, 10), scale(k, 0.01), {kind, 0});
    b.pop_scope();
    b.output("one", attention(one.q, one.k, v, {.scale = one.scale}));
    b.output("two", attention(two.q, two.k, v, {.scale = two.scale}));
    const Graph g = b.finish();
    Parameters p = Parameters::random(g, 2);
    if (kind == qk_norm_kind::l2)
      for (const char* name : {"a.qk_scale", "b.qk_scale"}) p.own(name, {1}, {3.0f});
    Results r = oracle(g, p, {{"n", 9}}, 4);
    BOOST_TEST(difference({{"x", r["one"]}}, {{"x", r["two"]}}) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto with = [](AttentionOptions o) {
    return mistake([&](Builder& b) {
      const Node q = b.input("q", f32, {2, 4, n, 8}), k = b.input("k", f32, {2, 2, keys, 8}),
                 v = b.input("v", f32, {2, 2, keys, 8});
      return attention(q, k, v, o);
    });
  };
  BOOST_TEST(with({.scale = 0.0}) == "scale 0 | a finite scale other than 0");
  for (const double x : {NAN, INFINITY, -INFINITY}) {
    BOOST_TEST(with({.scale = x}) == "a scale that is not finite | a finite scale other than 0");
    BOOST_TEST(with({.softcap = x}) == "a softcap that is negative or not finite | a finite softcap above 0");
  }
  BOOST_TEST(with({.softcap = 0.0}) == "softcap 0 | a finite softcap above 0");
  BOOST_TEST(with({.softcap = -2.0}) == "a softcap that is negative or not finite | a finite softcap above 0");

  const auto heads = [](std::int64_t h, std::int64_t kv) {
    return mistake([&](Builder& b) {
      const Node q = b.input("q", f32, {2, h, n, 8}), k = b.input("k", f32, {2, kv, keys, 8}),
                 v = b.input("v", f32, {2, kv, keys, 8});
      return attention(q, k, v);
    });
  };
  BOOST_TEST(heads(4, 0) == "0 key heads | a divisor of 4");
  BOOST_TEST(heads(4, 3) == "3 key heads | a divisor of 4");
  BOOST_TEST(heads(2, 4) == "4 key heads | a divisor of 2");
  BOOST_TEST(mistake([&](Builder& b) {
               return self_attention("a", b.input("x", f32, {2, n, 8}), {.heads = 4, .kv_heads = -1});
             }) == "-1 key heads | a divisor of 4");
  BOOST_TEST(mistake([&](Builder& b) {
               return self_attention("a", b.input("x", f32, {2, n, 8}),
                                     {.variant = variants::linear(), .softcap = 5.0});
             }) == "a softcap with linear | softmax attention, or no softcap");
  BOOST_TEST(mistake([&](Builder& b) {
               return self_attention("a", b.input("x", f32, {2, n, 8}), {.heads = 2, .value_dim = -1});
             }) == "head_dim 4, value_dim -1 | at least 1 each");
}

BOOST_AUTO_TEST_CASE(heads_that_are_known_late_are_checked_when_they_are_bound) {
  Builder b;
  const DimSpec h = dim("heads"), kv = dim("kv");
  const Node q = b.input("q", f32, {1, h, n, 8}), k = b.input("k", f32, {1, kv, n, 8}),
             v = b.input("v", f32, {1, kv, n, 8});
  b.output("y", attention(q, k, v));
  const Graph g = b.finish();
  for (const char* backend : {"simd", "tbb", "reference"})
    for (const std::int64_t key_heads : {0, 3}) {
      const std::string message =
          error_of([&] { run(g, {}, {{"heads", 4}, {"kv", key_heads}, {"n", 2}}, {.backend = backend}, 1); });
      BOOST_TEST(message.find("4 query heads and " + std::to_string(key_heads) +
                              " key heads; the query heads must be a multiple of the key heads") != std::string::npos,
                 message);
    }
  check_quickly(g, {{"heads", 4}, {"kv", 2}, {"n", 5}});
}

BOOST_AUTO_TEST_SUITE_END()

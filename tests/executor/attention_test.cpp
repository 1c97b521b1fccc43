// Attention as a node of a model: score functions, sinks, biases, log-sum-exp and masks that differ between batch
// elements and heads, on every ISA and backend against float64; written out and fused.

#include "support.hpp"

#include <treadle/ops/rules.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t heads = 3, head_dim = 20;

struct Inputs {
  Node q, k, v;
};
constexpr Inputs given(Builder& g) {
  const DimSpec keys = dim("keys");
  return {g.input("q", f32, {batch, heads, seq, head_dim}), g.input("k", f32, {batch, heads, keys, head_dim}),
          g.input("v", f32, {batch, heads, keys, head_dim})};
}

/// On every backend and ISA, as declared and optimised. Returns how many comparisons there were.
void check(const Graph& declared, double bound = 2e-5) {
  BOOST_REQUIRE(!declared.error);
  const Graph better = optimise(declared);
  const Parameters parameters = Parameters::random(declared, 5);
  for (const Lengths& dims :
       {Lengths{{"batch", 2}, {"seq", 1}, {"keys", 5}}, Lengths{{"batch", 3}, {"seq", 37}, {"keys", 37}},
        Lengths{{"batch", 5}, {"seq", 20}, {"keys", 70}}}) {
    const Results want = oracle(declared, parameters, dims, 8);
    BOOST_TEST(difference(oracle(better, parameters, dims, 8), want) < 1e-12);
    for (const std::string& isa : isas())
      for (const std::string_view backend : {"simd", "tbb"})
        BOOST_TEST_CONTEXT(isa << " " << backend << " seq " << dims[1].value) {
          BOOST_TEST(difference(run(declared, parameters, dims, {.backend = backend, .isa = isa}, 8), want) < bound);
          BOOST_TEST(difference(run(better, parameters, dims, {.backend = backend, .isa = isa}, 8), want) < bound);
        }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_nodes)

BOOST_AUTO_TEST_CASE(score_functions) {
  Builder g;
  const auto [q, k, v] = given(g);
  g.input("slopes", f32, {heads});
  const auto alibi = score_mod([](auto score, auto, auto h, auto i, auto j) {
    return score - lookup("slopes", h) * abs(i + (length(j) - length(i)) - j);
  });
  const auto capped = score_mod([](auto score, auto, auto, auto, auto) { return 2.0 * tanh(score / 2.0); });
  g.output("alibi", attention(q, k, v, {.mask = causal, .score = alibi}));
  g.output("capped", attention(q, k, v, {.score = capped}));
  check(g.finish());
}

BOOST_AUTO_TEST_CASE(sums_over_features) {
  Builder g;
  const auto [q, k, v] = given(g);
  g.input("weights", f32, {head_dim});
  g.input("fade", f32, {heads});
  const auto additive = score_mod([](auto, auto, auto, auto i, auto j) {
    return sum(i, [&](auto f) { return lookup("weights", f) * tanh(i[f] + j[f]); });
  });
  const auto mixed = score_mod([](auto score, auto, auto h, auto i, auto j) {
    return score - lookup("fade", h) * sum(i, [&](auto f) { return abs(i[f] - j[f]); });
  });
  // Sums of one side alone, an index that is not the feature, and one that leaves the row.
  const auto sides = score_mod([](auto score, auto, auto, auto i, auto j) {
    return score + 0.1 * sum(i, [&](auto f) { return i[f] * i[f]; }) -
           0.2 * sum(j, [&](auto f) { return j[f] * j[f]; }) +
           0.1 * sum(i, [&](auto f) { return where(f % 2 == 0, i[f + 1], j[f]) * j[(f + i) % 7]; });
  });
  g.output("additive", attention(q, k, v, {.score = additive}));
  g.output("additive_causal", attention(q, k, v, {.mask = causal, .score = additive}));
  g.output("mixed", attention(q, k, v, {.mask = window(9, 3), .score = mixed, .scale = 0.7}));
  g.output("sides", attention(q, k, v, {.score = sides}));
  check(g.finish());
}

BOOST_AUTO_TEST_CASE(a_score_function_of_the_position_alone) {
  Builder g;
  const auto [q, k, v] = given(g);
  const auto parity =
      score_mod([](auto, auto b, auto h, auto i, auto j) { return where((i + j + h + b) % 2 == 0, 1.0, -1.0); });
  g.output("y", attention(q, k, v, {.score = parity}));
  check(g.finish());
}

BOOST_AUTO_TEST_CASE(sinks_biases_and_logsumexp) {
  Builder g;
  const auto [q, k, v] = given(g);
  const Node bias = g.input("bias", f32, {heads, seq, dim("keys")}), sink = g.input("sink", f32, {heads});
  const Node y = attention(q, k, v, {.mask = causal & window(9, 0), .bias = bias, .sink = sink});
  g.output("y", y);
  g.output("lse", attention_logsumexp(y));
  check(g.finish());
}

BOOST_AUTO_TEST_CASE(rows_that_see_nothing) {
  Builder g;
  const auto [q, k, v] = given(g);
  const Node y =
      attention(q, k, v, {.mask = mask_mod([](auto, auto, auto i, auto j) { return (j < i) & (i % 3 != 1); })});
  g.output("y", y);
  g.output("lse", attention_logsumexp(y));
  const Graph graph = g.finish();
  check(graph);
  const Results r =
      run(graph, Parameters::random(graph, 1), {{"batch", 1}, {"seq", 8}, {"keys", 8}}, {.backend = "simd"}, 2);
  BOOST_TEST(r.at("lse")[0] == -INFINITY);
  BOOST_TEST(r.at("lse")[2] != -INFINITY);
  for (std::size_t i = 0; i < head_dim; ++i) BOOST_TEST(r.at("y")[i] == 0.0);
}

BOOST_AUTO_TEST_CASE(masks_by_batch_element_and_head) {
  Builder g;
  const auto [q, k, v] = given(g);
  g.input("lengths", i32, {batch});
  g.input("reach", i32, {heads});
  const Mask m = key_lengths("lengths") &
                 mask_mod([](auto, auto h, auto i, auto j) { return abs(i - j) <= lookup<i32>("reach", h); });
  g.output("y", attention(q, k, v, {.mask = m}));
  check(g.finish());
}

BOOST_AUTO_TEST_CASE(masks_by_batch_element_written_out) {
  for (const bool by_selection : {false, true}) {
    Builder g;
    const auto [q, k, v] = given(g);
    g.input("lengths", i32, {batch});
    const Node scores = scale(matmul(q, transpose(k)), 0.25);
    const Node m = mask_node(g, key_lengths("lengths"), seq, dim("keys"));
    g.output("y", matmul(softmax(by_selection ? select(m, scores, -INFINITY) : scores + mask_to_bias(m)), v));
    const Graph declared = g.finish();
    BOOST_TEST(optimise(declared).view().count(op::attention) == 1);
    check(declared);
  }
}

BOOST_AUTO_TEST_SUITE_END()

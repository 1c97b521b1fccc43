// Probes of attention's weights: each against float64 and against the weights from primitive nodes, on every ISA and
// for every thread count; what they mean, what they cost, what they refuse.

#include "op_check.hpp"

#include <treadle/passes/pipeline.hpp>

#include <numeric>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t heads = 4;
const DimSpec keys = dim("keys");

struct Heads {
  Node q, k, v;
};
Heads given(Builder& b, std::int64_t kv_heads = heads, std::int64_t dim = 12) {
  return {b.input("q", f32, {2, heads, n, dim}), b.input("k", f32, {2, kv_heads, keys, dim}),
          b.input("v", f32, {2, kv_heads, keys, 5})};
}

void probe_all(Builder& b, Node y, std::int64_t k = 3) {
  b.output("weights", attention_weights(y));
  b.output("entropy", attention_entropy(y));
  b.output("received", attention_column_sums(y));
  const AttentionTopK top = attention_top_k(y, k);
  b.output("indices", top.indices);
  b.output("largest", top.weights);
}

const Lengths some_lengths[] = {{{"n", 1}, {"keys", 1}},   {{"n", 5}, {"keys", 3}},    {{"n", 17}, {"keys", 33}},
                                {{"n", 50}, {"keys", 50}}, {{"n", 33}, {"keys", 200}}, {{"n", 3}, {"keys", 0}},
                                {{"n", 0}, {"keys", 4}}};

void check_all(const Graph& g) {
  for (const Lengths& dims : some_lengths)
    BOOST_TEST_CONTEXT("n " << dims[0].value << " keys " << dims[1].value) check(g, dims, 1e-5);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_probes)

BOOST_AUTO_TEST_CASE(of_all_keys) {
  Builder b;
  const auto [q, k, v] = given(b);
  probe_all(b, attention(q, k, v));
  check_all(b.finish());
}

BOOST_AUTO_TEST_CASE(under_masks_biases_scores_and_sinks) {
  for (const int what : {0, 1, 2, 3}) {
    Builder b;
    const auto [q, k, v] = given(b, what % 2 == 0 ? 2 : 1);
    b.input("lengths", i32, {2});
    AttentionOptions o;
    if (what == 0) o.mask = causal & window(9, 0);
    if (what == 1) o.mask = key_lengths("lengths");
    if (what == 1) o.bias = b.input("bias", f32, {heads, n, keys});
    if (what == 2) o.mask = mask_mod([](auto, auto h, auto i, auto j) { return (i + j + h) % 3 != 1; });
    if (what >= 2) o.sink = b.input("sink", f32, {heads});
    if (what == 3) o.score = softcap(2) >> alibi(heads);
    probe_all(b, attention(q, k, v, o), what == 3 ? 4 : 2);
    BOOST_TEST_CONTEXT("case " << what) check_all(b.finish());
  }
}

BOOST_AUTO_TEST_CASE(agree_with_weights_that_are_written_out) {
  Builder b;
  const auto [q, k, v] = given(b);
  const Node y = attention(q, k, v, {.mask = causal, .scale = 0.5});
  const Node scores = select(mask_node(b, causal, n, keys), scale(matmul(q, transpose(k)), 0.5), -INFINITY);
  b.output("weights", attention_weights(y));
  b.output("written", softmax(scores));
  const Graph g = b.finish();
  for (const Lengths& dims : some_lengths) {
    Results r = oracle(g, {}, dims, 3);
    BOOST_TEST(difference({{"x", r["weights"]}}, {{"x", r["written"]}}) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(mean_what_they_say) {
  Builder b;
  const auto [q, k, v] = given(b);
  const Node y = attention(q, k, v, {.mask = causal});
  probe_all(b, y, 2);
  const Graph g = b.finish();
  Results r = run(g, {}, {{"n", 20}, {"keys", 20}}, {.backend = "simd"}, 5);
  const auto& w = r["weights"];
  for (std::size_t row = 0; row < 8 * 20; ++row) {
    double sum = 0, entropy = 0;
    std::size_t best = 0;
    for (std::size_t j = 0; j < 20; ++j) {
      const double p = w[row * 20 + j];
      sum += p;
      if (p > 0) entropy -= p * std::log(p);
      if (p > w[row * 20 + best]) best = j;
    }
    BOOST_TEST(std::abs(sum - 1) < 1e-5);
    BOOST_TEST(std::abs(entropy - r["entropy"][row]) < 1e-5);
    BOOST_TEST(r["indices"][row * 2] == static_cast<double>(best));
    BOOST_TEST(std::abs(r["largest"][row * 2] - w[row * 20 + best]) < 1e-6);
    // The first query sees one key: all weight on it, no entropy, no second.
    if (row % 20 != 0) continue;
    BOOST_TEST(std::abs(r["entropy"][row]) < 1e-6);
    BOOST_TEST(r["indices"][row * 2 + 1] == -1.0);
    BOOST_TEST(r["largest"][row * 2 + 1] == 0.0);
  }
  for (std::size_t head = 0; head < 8; ++head)
    for (std::size_t j = 0; j < 20; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < 20; ++i) sum += w[(head * 20 + i) * 20 + j];
      BOOST_TEST(std::abs(sum - r["received"][head * 20 + j]) < 1e-5);
    }
}

BOOST_AUTO_TEST_CASE(rows_that_see_nothing_and_keys_that_hold_anything) {
  Builder b;
  const auto [q, k, v] = given(b);
  const Mask odd = mask_mod([](auto, auto, auto i, auto j) { return (i % 2 == 1) & (j != 3); });
  probe_all(b, attention(q, k, v, {.mask = odd}), 2);
  const Graph g = b.finish();
  const Lengths dims{{"n", 6}, {"keys", 7}};
  for (const std::string& isa : isas()) {
    BoundModel model(g, {}, {.backend = "simd", .isa = isa});
    model.bind_dims(dims);
    Tensors in = inputs_of(g, dims, 4), out = outputs_of(g, dims);
    auto* key = in.at("k").view.as<float>();
    for (std::int64_t row = 0; row < 2 * heads; ++row)
      for (std::int64_t d = 0; d < 12; ++d) key[(row * 7 + 3) * 12 + d] = d % 2 ? NAN : INFINITY;
    model.run(named(in), named(out));
    Results r = values(out);
    for (const auto& [name, x] : r)
      for (const double value : x) BOOST_TEST(std::isfinite(value), name);
    for (std::size_t row = 0; row < 8 * 6; ++row) {
      const bool empty = row % 6 % 2 == 0;
      BOOST_TEST((r["entropy"][row] == 0.0) == empty);
      BOOST_TEST((r["indices"][row * 2] == -1.0) == empty);
      BOOST_TEST(r["indices"][row * 2] != 3.0);
      BOOST_TEST(r["weights"][row * 7 + 3] == 0.0);
      if (!empty) continue;
      for (std::size_t j = 0; j < 7; ++j) BOOST_TEST(r["weights"][row * 7 + j] == 0.0);
      BOOST_TEST(r["largest"][row * 2] == 0.0);
    }
    for (std::size_t head = 0; head < 8; ++head) BOOST_TEST(r["received"][head * 7 + 3] == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(equal_scores_are_listed_by_key) {
  Builder b;
  const auto [q, k, v] = given(b);
  const Node top = attention_top_k(attention(scale(q, 0), k, v), 4).indices;
  b.output("y", top);
  const Graph g = b.finish();
  for (const std::string& isa : isas()) {
    Results r = run(g, {}, {{"n", 9}, {"keys", 300}}, {.backend = "simd", .isa = isa}, 6);
    for (std::size_t i = 0; i < r["y"].size(); ++i) BOOST_TEST(r["y"][i] == static_cast<double>(i % 4));
  }
}

BOOST_AUTO_TEST_CASE(more_than_there_are) {
  Builder b;
  const auto [q, k, v] = given(b);
  const AttentionTopK top = attention_top_k(attention(q, k, v, {.mask = causal}), 40);
  b.output("largest", top.weights);
  b.output("y", top.indices);
  const Graph g = b.finish();
  for (const Lengths& dims : {Lengths{{"n", 5}, {"keys", 3}}, Lengths{{"n", 17}, {"keys", 33}}}) {
    Results want = oracle(g, {}, dims, 9);
    for (const std::string& isa : isas()) {
      Results got = run(g, {}, dims, {.backend = "simd", .isa = isa}, 9);
      BOOST_TEST(difference({{"x", got["largest"]}}, {{"x", want["largest"]}}) < 1e-6);
      for (std::size_t i = 0; i < got["y"].size(); ++i)  // near-equal ones may change places
        BOOST_TEST((got["y"][i] == -1.0) == (want["y"][i] == -1.0));
    }
  }
}

BOOST_AUTO_TEST_CASE(of_a_layer_and_inside_a_repeat) {
  Builder b;
  const Node x = b.input("x", f32, {2, n, 16});
  const RepeatResult r = repeat("h", 3, x, [](Iteration& it, Node h) {
    const Node a = self_attention("attn", h, {.heads = heads, .kv_heads = 2, .mask = causal});
    it.side("entropy", attention_entropy(a));
    it.side("received", attention_column_sums(a));
    return h + a;
  });
  b.output("y", r);
  b.output("entropy", r.sides[0]);
  b.output("received", r.sides[1]);
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  for (const std::int64_t length : {1, 19}) {
    check(g, {{"n", length}}, 2e-5);
    check(optimise(g), {{"n", length}}, 2e-5);
  }
}

BOOST_AUTO_TEST_CASE(summaries_take_memory_linear_in_the_length) {
  const auto bytes = [](std::int64_t length, bool sums) {
    Builder b;
    const Node q = b.input("q", f32, {1, 1, n, 8}), k = b.input("k", f32, {1, 1, n, 8}),
               v = b.input("v", f32, {1, 1, n, 8});
    const Node y = attention(q, k, v, {.mask = causal & window(127, 0)});
    b.output("y", y);
    if (sums) {
      b.output("received", attention_column_sums(y));
    } else {
      b.output("entropy", attention_entropy(y));
      b.output("top", attention_top_k(y, 2).indices);
    }
    BoundModel model(b.finish(), {}, {.backend = "simd"});
    model.bind_dims({{"n", length}});
    return static_cast<double>(model.planned_bytes());
  };
  for (const bool sums : {false, true}) {
    const double small = bytes(1 << 10, sums), large = bytes(1 << 20, sums);
    const double per_token = (large - small) / ((1 << 20) - (1 << 10));
    BOOST_TEST(per_token < 64);  // the log-sum-exp, sums in double, what is staged
    for (const std::int64_t length : {1 << 14, 1 << 17})
      BOOST_TEST(bytes(length, sums) < small + 64.0 * static_cast<double>(length));
  }
}

BOOST_AUTO_TEST_CASE(work_that_is_counted_follows_the_mask) {
  Builder b;
  const auto [q, k, v] = given(b);
  const Node y = attention(q, k, v, {.mask = causal});
  b.output("entropy", attention_entropy(y));
  b.output("received", attention_column_sums(y));
  BoundModel model(b.finish(), {}, {.backend = "simd"});
  model.bind_dims({{"n", 100}, {"keys", 100}});
  int probes = 0;
  for (const StepInfo& s : model.steps()) {
    if (s.op != op::attention_probe) continue;
    ++probes;
    BOOST_TEST(s.useful_flops == 2.0 * 12 * 8 * (100 * 101 / 2));
    BOOST_TEST(s.executed_flops >= s.useful_flops);
    BOOST_TEST(s.executed_flops < 2.0 * 12 * 8 * 100 * 100);
  }
  BOOST_TEST(probes == 2);
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto x = [](Builder& b) { return b.input("x", f32, {2, n, 8}); };
  BOOST_TEST(mistake([&](Builder& b) { return attention_entropy(layer_norm("ln", x(b))); }) ==
             "a probe of layer_norm | the result of attention");
  BOOST_TEST(mistake([&](Builder& b) { return attention_weights(linear("p", x(b), {.width = 3})); }) ==
             "a probe of input | the result of attention");
  for (const std::int64_t k : {0, -3})
    BOOST_TEST(mistake([&](Builder& b) {
                 const auto [q, key, v] = given(b);
                 return attention_top_k(attention(q, key, v), k).weights;
               }) == "top_k " + std::to_string(k) + " | at least 1");
}

BOOST_AUTO_TEST_SUITE_END()

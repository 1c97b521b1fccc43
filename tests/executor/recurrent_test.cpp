// Retention, gates, the delta rule and their layers on every ISA and backend against float64.

#include "op_check.hpp"

#include <treadle/ops/reference.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

struct Sequence {
  Node q, k, v, gate, channel_gate, beta, state;
};

/// Keys of length 1, β in (0, 1), log gates below 0.
Sequence sequence(Builder& b, std::int64_t dim, std::int64_t values, std::int64_t heads, std::int64_t kv_heads) {
  Sequence s;
  s.q = b.input("q", f32, {2, heads, n, dim});
  s.k = l2_norm(b.input("k", f32, {2, kv_heads, n, dim}));
  s.v = b.input("v", f32, {2, kv_heads, n, values});
  s.gate = scale(softplus(b.input("gate", f32, {2, heads, n, 1})), -0.5);
  s.channel_gate = scale(softplus(b.input("channel_gate", f32, {2, heads, n, dim})), -2);
  s.beta = sigmoid(b.input("beta", f32, {2, heads, n}));
  s.state = b.input("state", f32, {2, heads, dim, values});
  return s;
}

std::string mistake(Node (*make)(const Sequence&)) {
  Builder b;
  b.output("y", make(sequence(b, 6, 5, 2, 2)));
  const Graph g = b.finish();
  return std::string(g.strings[g.error.got]) + " / " + std::string(g.strings[g.error.expected]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recurrent_attention_op)

BOOST_AUTO_TEST_CASE(every_kind) {
  for (const std::int64_t length : {0, 1, 5, 17, 50})
    for (const auto& [dim, values] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 18}, {16, 7}}) {
      Builder b;
      const Sequence s = sequence(b, dim, values, 4, 2);
      const auto both = [&](const char* name, RecurrentResult r) {
        b.output(name, r.out);
        b.output(std::string(name) + "_state", r.state);
      };
      b.output("retention", retention(s.q, s.k, s.v));
      both("slow", retention(s.q, s.k, s.v, {.decays = {1, 0.5, 0.01, 1e-9}, .scale = 2, .state = s.state}));
      both("gated", gated_linear_attention(s.q, s.k, s.v, s.channel_gate, {.state = s.state}));
      b.output("strong", gated_linear_attention(s.q, s.k, s.v, scale(s.channel_gate, 30)));
      both("delta", delta_rule(s.q, s.k, s.v, s.beta));
      both("gated_delta", gated_delta_rule(s.q, s.k, s.v, s.gate, s.beta, {.state = s.state}));
      b.output("channels", gated_delta_rule(s.q, s.k, s.v, s.channel_gate, s.beta));
      b.output("plain", recurrent_attention(s.q, s.k, s.v));
      BOOST_TEST_CONTEXT(length << " tokens of " << dim) check(b.finish(), {{"n", length}});
    }
}

/// What the state holds and the outputs need is the same wherever a sequence is split.
BOOST_AUTO_TEST_CASE(a_state_of_the_model_gives_the_whole_step_by_step) {
  const auto layer = [](bool stepped) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 6}), k = l2_norm(b.input("k", f32, {1, 2, n, 6})),
               v = b.input("v", f32, {1, 2, n, 5});
    RecurrentOptions o{.log_gate = scale(softplus(q), -1), .beta = sigmoid(logsumexp(q))};
    if (stepped) {
      o.state = b.state("memory", f32, {1, 2, 6, 5});
      const RecurrentResult r = recurrent_attention(q, k, v, o);
      b.output("y", r.out);
      b.output("kept", append(o.state, r.state, 2, 0));
    } else {
      b.output("y", recurrent_attention(q, k, v, o));
    }
    return b.finish();
  };
  const Graph whole = layer(false), steps = layer(true);
  BOOST_REQUIRE((!whole.error && !steps.error));
  constexpr std::int64_t length = 73;
  std::vector<float> q(2 * length * 6), k = q, v(2 * length * 5), want(v.size()), kept(60);
  Numbers numbers{9};
  for (auto* t : {&q, &k, &v})
    for (float& e : *t) e = static_cast<float>(numbers.number());
  const auto part = [](std::vector<float>& t, std::int64_t width, std::int64_t first, std::int64_t count) {
    TensorView x = dense_view(t.data() + first * width, f32, std::vector<std::int64_t>{1, 2, count, width});
    x.strides[0] = 2 * length * width;
    x.strides[1] = length * width;
    return x;
  };
  for (const char* backend : {"reference", "simd", "tbb"})
    for (const auto& parts : {std::vector<std::int64_t>{1, 12, 0, 50, 10}, {49, 2, 22}, {3, 70}}) {
      BoundModel full(whole, {}, {.backend = backend});
      full.bind_dims({{"n", length}});
      full.run({{"q", part(q, 6, 0, length)}, {"k", part(k, 6, 0, length)}, {"v", part(v, 5, 0, length)}},
               {{"y", part(want, 5, 0, length)}});
      BoundModel model(steps, {}, {.backend = backend});
      std::vector<float> got(want.size());
      std::int64_t at = 0;
      for (const std::int64_t count : parts) {
        model.bind_dims({{"n", count}});
        model.run({{"q", part(q, 6, at, count)}, {"k", part(k, 6, at, count)}, {"v", part(v, 5, at, count)}},
                  {{"y", part(got, 5, at, count)},
                   {"kept", dense_view(kept.data(), f32, std::vector<std::int64_t>{1, 2, 6, 5})}});
        at += count;
      }
      for (std::size_t i = 0; i < want.size(); ++i) BOOST_TEST(std::abs(want[i] - got[i]) < 1e-5f);
    }
}

BOOST_AUTO_TEST_CASE(the_form_follows_the_length) {
  Builder b;
  const Sequence s = sequence(b, 16, 16, 2, 2);
  b.output("y", gated_linear_attention(s.q, s.k, s.v, s.gate));
  const Graph g = b.finish();
  BoundModel m(g, {}, {.backend = "simd"});
  const auto form = [&](std::int64_t length) {
    m.bind_dims({{"n", length}});
    for (const StepInfo& step : m.steps())
      if (step.op == op::recurrent_attention) return step.kernel + ", " + step.form;
    return std::string();
  };
  BOOST_TEST(form(1) == "recurrent_attention_recurrent, token by token, with a running state");
  BOOST_TEST(form(200) == "recurrent_attention_chunked, chunks with a running state");
}

/// Linear in the length, in time and in memory, from the plan alone.
BOOST_AUTO_TEST_CASE(work_and_memory_are_linear) {
  Builder b;
  const Sequence s = sequence(b, 16, 16, 2, 2);
  b.output("y", gated_delta_rule(s.q, s.k, s.v, s.gate, s.beta));
  const Graph g = b.finish();
  BoundModel m(g, {}, {.backend = "simd"});
  const auto numbers = [&](std::int64_t length) {
    m.bind_dims({{"n", length}});
    double flops = 0;
    for (const StepInfo& step : m.steps())
      if (step.op == op::recurrent_attention) flops = step.executed_flops;
    return std::pair{flops, static_cast<double>(m.planned_bytes())};
  };
  const auto [flops, bytes] = numbers(1000);
  for (const std::int64_t more : {10, 1000}) {
    const auto [f, p] = numbers(1000 * more);
    BOOST_TEST(f == flops * static_cast<double>(more));
    BOOST_TEST(p <= bytes * static_cast<double>(more));
  }
}

BOOST_AUTO_TEST_CASE(layers) {
  for (const std::int64_t length : {1, 4, 37}) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 24});
    b.output("retention", retention_layer("r", x, {.heads = 2, .rope = RopeOptions{}}));
    b.output("bare", retention_layer("b", x, {.heads = 3, .value_dim = 5, .norm = head_norm::none, .gate = false}));
    b.output("rms", retention_layer("m", x, {.heads = 1, .decays = {0.9}, .norm = head_norm::rms, .gain = true}));
    b.output("gated", gated_linear_layer("g", x, {.heads = 2}));
    b.output("wide", gated_linear_layer("w", x, {.heads = 4, .key_dim = 5, .value_dim = 7, .gate_rank = 3}));
    const RecurrentResult delta = gated_delta_layer("d", x, {.heads = 2});
    b.output("delta", delta);
    b.output("delta_state", delta.state);
    b.output("plain_delta", gated_delta_layer("p", x, {.heads = 2, .decay = false, .norm = head_norm::none}));
    check(b.finish(), {{"n", length}}, 2e-5);
  }
}

/// RetNet's layer from its equation: (silu(x W_g) ∘ norm(retention)) W_o.
BOOST_AUTO_TEST_CASE(a_retention_layer_is_its_equation) {
  Builder b;
  const Node x = b.input("x", f32, {2, n, 8});
  b.output("layer", retention_layer("r", x, {.heads = 2, .value_dim = 3}));
  const auto weight = [&](const char* name, std::int64_t out, std::int64_t in) {
    return b.input(name, f32, {out, in});  // fed with the layer's
  };
  const Node q = split_heads(linear_with(x, weight("q", 8, 8)), 2),
             k = split_heads(linear_with(x, weight("k", 8, 8)), 2),
             v = split_heads(linear_with(x, weight("v", 6, 8)), 2);
  const Node y = merge_heads(layer_norm("", retention(q, k, v), {.eps = 1e-6, .weight = false}));
  b.output("equation", linear_with(silu(linear_with(x, weight("g", 6, 8))) * y, weight("out", 8, 6)));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  const Parameters parameters = Parameters::random(g, 5, {});
  std::vector<float> data(2 * 9 * 8), layer(data.size()), equation(data.size());
  Numbers numbers{3};
  for (float& e : data) e = static_cast<float>(numbers.number());
  BoundModel m(g, parameters, {.backend = "simd"});
  m.bind_dims({{"n", 9}});
  const std::vector<std::int64_t> shape{2, 9, 8};
  std::vector<NamedTensor> in{{"x", dense_view(data.data(), f32, shape)}};
  for (const char* name : {"q", "k", "v", "g", "out"})
    in.push_back({name, parameters.find("r." + std::string(name) + ".weight")});
  m.run(in, std::vector<NamedTensor>{{"layer", dense_view(layer.data(), f32, shape)},
                                     {"equation", dense_view(equation.data(), f32, shape)}});
  for (std::size_t i = 0; i < layer.size(); ++i) BOOST_TEST(std::abs(layer[i] - equation[i]) < 1e-5f);
}

BOOST_AUTO_TEST_CASE(wrong_uses_are_told) {
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return recurrent_attention(s.q, s.k, s.v, {.log_gate = s.v}); }) ==
             "log_gate [2, 2, n, 5] / rank 4 that broadcasts to [2, 2, n, 6]");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return delta_rule(s.q, s.k, s.v, s.gate); }) ==
             "beta [2, 2, n, 1] / [2, 2, n]");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return recurrent_attention(s.q, s.k, s.v, {.state = s.q}); }) ==
             "state [2, 2, n, 6] / [2, 2, 6, 5]");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return recurrent_attention(slice(s.q, 2, 0, 1), s.k, s.v); }) ==
             "n keys / as many as queries, 1");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return retention(s.q, s.k, s.v, {.decays = {0.5}}); }) ==
             "1 decays / one in (0, 1] for each of 2 heads");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return retention(s.q, s.k, s.v, {.decays = {0.5, 1.5}}); }) ==
             "2 decays / one in (0, 1] for each of 2 heads");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return retention(s.beta, s.k, s.v); }) ==
             "[2, 2, n] / [batch, a number of heads, length, dim]");
  BOOST_TEST(mistake([](const Sequence& s) -> Node { return retention_layer("r", s.beta, {.heads = 2}); }) ==
             "[2, 2, n] / [batch, length, a number]");
  BOOST_TEST(mistake([](const Sequence& s) -> Node {
               return gated_delta_layer("r", merge_heads(s.q), {.heads = 5});
             }) == "5 heads / a divisor of width 12");
  BOOST_TEST(mistake([](const Sequence& s) -> Node {
               return gated_linear_layer("r", merge_heads(s.q), {.heads = 2, .gate_rank = 0});
             }) == "a gate_rank below 1 or a temperature not above 0 / 16 and 16, for example");
}

BOOST_AUTO_TEST_SUITE_END()

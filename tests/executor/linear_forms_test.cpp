// Linear attention with feature maps of every kind, in every form, with padding and with states; maps by themselves.

#include "op_check.hpp"

#include <treadle/ops/reference.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

/// Positive, with a kink, and with each kind of arithmetic that is traced.
constexpr auto leaky = feature_map([](auto x) { return where(x > 0.0, x + 0.25, 0.25 * exp(x * 3.0)); });
constexpr auto wave = feature_map([](auto x) { return 1.5 + tanh(x) * sigmoid(x) + abs(floor(x * 4.0)) * 0.125; });
constexpr auto own_elu = feature_map([](auto x) { return where(x > 0.0, x + 1.0, exp(min(x, 0.0))); });

/// (φ(q) φ(k)ᵀ where causal) v over the same sum of ones, plus eps.
Node as_equations(Node fq, Node fk, Node v, bool is_causal, double eps) {
  Builder& b = *fq.builder;
  Node s = matmul(fq, transpose(fk));
  if (is_causal) s = select(mask_node(b, causal, n, n), s, 0);
  const Node d = matmul(s, full(b, {1, 1, n, 1}, 1)) + full(b, {1}, eps);
  return matmul(s, v) * exp(scale(log(d), -1));
}

/// φ as a node: any sub-graph.
using Feature = Node (*)(Node);
Node positive_and_negative(Node x) { return concatenate({relu(x), relu(scale(x, -1))}, 3); }

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_attention_forms)

BOOST_AUTO_TEST_CASE(maps, *boost::unit_test::label("long")) {
  check_unary({2, 3, n}, [](Node x) { return map(x, leaky); });
  check_unary({n, 70}, [](Node x) { return map(scale(x, 3), wave); });
  check_unary({700, n}, [](Node x) { return map(x, feature_map([](auto v) { return v * v * v; })); });
  check_unary({n}, [](Node x) { return map(x, feature_map([](auto) { return 2.5; })) + x; });
  Builder b;
  const Node x = b.input("x", f32, {3, n});
  b.output("map", map(scale(x, 20), own_elu));
  b.output("named", elu_plus_one(scale(x, 20)));
  const Graph g = b.finish();
  for (const std::string& isa : isas()) {
    const Results r = run(g, {}, {{"n", 301}}, {.backend = "simd", .isa = isa}, 3);
    BOOST_TEST(difference({{"x", r.at("map")}}, {{"x", r.at("named")}}) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(every_feature_map_is_its_quadratic_form, *boost::unit_test::label("long")) {
  const Feature features[] = {
      [](Node x) -> Node { return elu_plus_one(x); },
      [](Node x) -> Node { return relu(x); },
      [](Node x) -> Node { return map(x, leaky); },
      [](Node x) -> Node { return map(x, wave); },
      positive_and_negative,
      [](Node x) -> Node { return exp(random_features(x, random_projection(*x.builder, 9, 5))); }};
  for (const std::int64_t length : {1, 7, 16, 49, 130})
    for (const bool is_causal : {false, true}) {
      Builder b;
      const Node q = b.input("q", f32, {2, 4, n, 5}), k = b.input("k", f32, {2, 4, n, 5}),
                 v = b.input("v", f32, {2, 4, n, 7});
      int i = 0;
      const auto pair = [&](Node op, Node written) {
        b.output("op" + std::to_string(i), op);
        b.output("written" + std::to_string(i++), written);
      };
      for (const Feature f : features) {
        const Node fq = f(q), fk = f(k);
        pair(linear_attention(fq, fk, v, {.causal = is_causal, .feature = activation::none, .eps = 0.5}),
             as_equations(fq, fk, v, is_causal, 0.5));
      }
      pair(linear_attention(q, k, v, {.causal = is_causal, .eps = 0.5}),
           as_equations(features[0](q), features[0](k), v, is_causal, 0.5));
      pair(linear_attention(q, k, v, {.causal = is_causal, .feature = activation::relu, .eps = 0.5}),
           as_equations(features[1](q), features[1](k), v, is_causal, 0.5));
      pair(linear_attention(q, k, v, {.causal = is_causal, .feature_map = leaky, .eps = 0.5}),
           as_equations(features[2](q), features[2](k), v, is_causal, 0.5));
      pair(favor_attention(q, k, v, {.features = 9, .causal = is_causal}),
           as_equations(features[5](q), features[5](k), v, is_causal, 0));
      const Graph g = b.finish();
      BOOST_REQUIRE(!g.error);
      BOOST_TEST_CONTEXT(length << " causal " << is_causal) {
        check(g, {{"n", length}});
        const Results r = oracle(g, {}, {{"n", length}}, 21);
        for (int p = 0; p < i; ++p)
          BOOST_TEST(difference({{"x", r.at("op" + std::to_string(p))}}, {{"x", r.at("written" + std::to_string(p))}}) <
                     1e-12);
      }
    }
}

/// Padded keys are as if they were not there, in numerator and denominator, in every form.
BOOST_AUTO_TEST_CASE(padding_is_nothing) {
  for (const std::int64_t length : {1, 9, 33, 200}) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 6}), k = b.input("k", f32, {1, 2, n, 6}),
               v = b.input("v", f32, {1, 2, n, 5}), nothing = b.input("nothing", f32, {1, 2, 6, 6}),
               exponents = b.input("exponents", f32, {1, 2, 8, 7}), lengths = b.input("lengths", i32, {1});
    const Node cut_k = slice(k, 2, 0, 4 < length ? 4 : 1), cut_v = slice(v, 2, 0, 4 < length ? 4 : 1);
    int i = 0;
    const auto pair = [&](Node padded, Node cut) {
      b.output("padded" + std::to_string(i), padded);
      b.output("cut" + std::to_string(i++), cut);
    };
    for (const activation f : {activation::elu_plus_one, activation::relu})
      pair(linear_attention(q, k, v, {.feature = f, .eps = 0.25, .key_lengths = lengths}),
           linear_attention(q, cut_k, cut_v, {.feature = f, .eps = 0.25}));
    pair(linear_attention(q, k, v, {.feature_map = leaky, .key_lengths = lengths}),
         linear_attention(q, cut_k, cut_v, {.feature_map = leaky}));
    pair(linear_attention_from(q, k, v, {.key_lengths = lengths, .state = nothing}).out,
         linear_attention_from(q, cut_k, cut_v, {.state = nothing}).out);
    pair(favor_attention(q, k, v, {.features = 8, .key_lengths = lengths}),
         favor_attention(q, cut_k, cut_v, {.features = 8}));
    pair(favor_attention_from(q, k, v, {.features = 8, .key_lengths = lengths, .state = exponents}).out,
         favor_attention_from(q, cut_k, cut_v, {.features = 8, .state = exponents}).out);
    const Graph g = b.finish();
    BOOST_REQUIRE(!g.error);
    Tensors in = inputs_of(g, {{"n", length}}, 5);
    const auto set = [&](const char* name, double value) {
      in.at(name).set([](void* p, DType) { return *static_cast<double*>(p); }, &value);
    };
    set("lengths", 4 < length ? 4 : 1);
    set("nothing", 0);
    set("exponents", 0);
    for (const std::string& isa : isas()) {
      BoundModel m(g, {}, {.backend = "simd", .isa = isa});
      m.bind_dims({{"n", length}});
      const Tensors out = outputs_of(g, {{"n", length}});
      m.run(named(in), named(out));
      for (int p = 0; p < i; ++p) BOOST_TEST_CONTEXT(isa << " " << length << " keys, pair " << p)
      BOOST_TEST(difference({{"x", values(out.at("padded" + std::to_string(p)))}},
                            {{"x", values(out.at("cut" + std::to_string(p)))}}) < 2e-6);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_with_a_state_is_no_chunk, *boost::unit_test::label("long")) {
  Builder b;
  const Node q = b.input("q", f32, {1, 2, n, 64}), v = b.input("v", f32, {1, 2, n, 64}),
             s = b.input("s", f32, {1, 2, 64, 65});
  b.output("y", linear_attention_from(q, q, v, {.causal = true, .state = s}).out);
  const Graph g = b.finish();
  BoundModel m(g, {}, {.backend = "simd"});
  const auto form = [&](std::int64_t length) {
    m.bind_dims({{"n", length}});
    for (const StepInfo& step : m.steps())
      if (!step.form.empty()) return step.form;
    return std::string();
  };
  BOOST_TEST(form(1) == "token by token, with a running state");
  BOOST_TEST(form(100) == "chunks with a running state");
  for (const std::int64_t length : {1, 2, 100}) check(g, {{"n", length}});
}

BOOST_AUTO_TEST_CASE(hyperbolic_features) {
  for (const std::int64_t length : {1, 20, 61}) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 6}), k = b.input("k", f32, {1, 2, n, 6}),
               v = b.input("v", f32, {1, 2, n, 5}), w = random_projection(b, 7, 6, 4),
               state = b.input("state", f32, {1, 2, 14, 7});
    b.output("hyperbolic", favor_attention(q, k, v, {.features = 7, .causal = true, .seed = 4, .hyperbolic = true}));
    b.output("both_signs", favor_attention(q, k, v, {.causal = true, .projection = concatenate({w, scale(w, -1)}, 0)}));
    const auto carried = favor_attention_from(q, k, v, {.features = 7, .hyperbolic = true, .state = state});
    b.output("carried", carried.out);
    b.output("kept", carried.state);
    const Graph g = b.finish();
    check(g, {{"n", length}});
    const Results r = run(g, {}, {{"n", length}}, {.backend = "simd"}, 5);
    BOOST_TEST((r.at("hyperbolic") == r.at("both_signs")));
  }
  const auto error = [](std::int64_t features) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 16}), k = b.input("k", f32, {1, 2, n, 16}),
               v = b.input("v", f32, {1, 2, n, 16});
    b.output("softmax", attention(q, k, v));
    b.output("favor", favor_attention(q, k, v, {.features = features, .hyperbolic = true}));
    const Results r = run(b.finish(), {}, {{"n", 64}}, {.backend = "simd"}, 3);
    return difference({{"x", r.at("favor")}}, {{"x", r.at("softmax")}});
  };
  BOOST_TEST(error(2048) < error(16) / 2);
}

/// Another draw without another graph: the projection is an input.
BOOST_AUTO_TEST_CASE(features_are_drawn_anew_from_a_seed) {
  const auto with_seed = [](std::int64_t seed) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, 30, 6});
    b.output("y", favor_attention(q, q, q, {.features = 10, .causal = true, .seed = seed}));
    return run(b.finish(), {}, {}, {.backend = "simd"}, 5).at("y");
  };
  Builder b;
  const Node q = b.input("q", f32, {1, 2, 30, 6}), w = b.input("w", f32, {10, 6});
  b.output("y", favor_attention(q, q, q, {.causal = true, .projection = w}));
  const Graph g = b.finish();
  BoundModel m(g, {}, {.backend = "simd"});
  const Tensors in = inputs_of(g, {}, 5);
  for (const std::int64_t seed : {1, 2}) {
    auto drawn = reference::random_projection<float>(10, 6, seed);
    std::vector<NamedTensor> given{{"q", in.at("q").view}, {"w", dense_view(drawn.data.data(), f32, drawn.shape)}};
    const Tensors out = outputs_of(g, {});
    m.run(given, named(out));
    BOOST_TEST(difference({{"x", values(out.at("y"))}}, {{"x", with_seed(seed)}}) < 1e-5);
  }
  BOOST_TEST(difference({{"x", with_seed(1)}}, {{"x", with_seed(2)}}) > 1e-3);
}

BOOST_AUTO_TEST_CASE(wrong_uses_are_told) {
  const auto mistake = [](auto make) {
    Builder b;
    b.output("y", make(b.input("x", f32, {1, 2, n, 6})));
    const Graph g = b.finish();
    return std::string(g.strings[g.error.got]) + " / " + std::string(g.strings[g.error.expected]);
  };
  BOOST_TEST(mistake([](Node x) { return linear_attention(x, x, x, {.feature = activation::silu}); }) ==
             "feature silu / none, elu_plus_one, relu or exp; map() for others");
  BOOST_TEST(mistake([](Node x) { return map(x, {}); }) == "a map without a function / feature_map(f)");
  BOOST_TEST(mistake([](Node x) {
               return map(x, feature_map([](auto v) { return v * lookup("table", iteration(v)); }));
             }) == "a feature map with a table / a function of its number alone");
}

BOOST_AUTO_TEST_SUITE_END()

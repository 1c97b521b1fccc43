// Positive random features, exponents in linear attention, and its state, on every ISA against float64.

#include "op_check.hpp"

#include <treadle/ops/reference.hpp>

#include <limits>

using namespace treadle;
using namespace treadle::test;

namespace {

const DimSpec keys = dim("keys");

}  // namespace

BOOST_AUTO_TEST_SUITE(random_features_and_states)

BOOST_AUTO_TEST_CASE(a_projection_is_orthogonal_and_of_gaussian_length) {
  const auto p = reference::random_projection<double>(2 * 64 + 3, 64, 7);
  const auto dot = [&](std::int64_t a, std::int64_t b) {
    double sum = 0;
    for (std::int64_t c = 0; c < 64; ++c)
      sum += p.data[static_cast<std::size_t>(a * 64 + c)] * p.data[static_cast<std::size_t>(b * 64 + c)];
    return sum;
  };
  double mean = 0;
  for (std::int64_t a = 0; a < 128; ++a) {
    mean += dot(a, a) / 128;
    for (std::int64_t b = a / 64 * 64; b < a; ++b) BOOST_TEST(std::abs(dot(a, b)) < 1e-9);
  }
  BOOST_TEST(std::abs(mean - 64) < 5);  // E|w|² = head_dim; the mean of 128 has a deviation of 1
  BOOST_TEST(std::abs(dot(0, 64)) > 1e-3);
  BOOST_TEST((reference::random_projection<double>(3, 4, 1) == reference::random_projection<double>(3, 4, 1)));
  BOOST_TEST(!(reference::random_projection<double>(3, 4, 1) == reference::random_projection<double>(3, 4, 2)));
}

BOOST_AUTO_TEST_CASE(favor_shapes) {
  for (const std::int64_t length : {0, 1, 15, 17, 50, 120})
    for (const std::int64_t width : {5, 32}) {
      Builder b;
      const Node q = b.input("q", f32, {2, 4, n, width}), k = b.input("k", f32, {2, 2, keys, width}),
                 v = b.input("v", f32, {2, 2, keys, 7}), lengths = b.input("lengths", i32, {2}),
                 w = b.parameter("w", {b.dim_number(11), b.dim_number(width)}),
                 computed = b.input("computed", f32, {3, width});
      b.output("full", favor_attention(q, k, v, {.features = 33}));
      b.output("causal", favor_attention(q, k, v, {.features = 16, .causal = true, .seed = 3}));
      b.output("given", favor_attention(q, k, v, {.projection = w, .key_lengths = lengths}));
      b.output("computed_features", random_features(q, computed));
      const Graph g = b.finish();
      for (const std::int64_t more : {0, 9})
        BOOST_TEST_CONTEXT(length << " queries") check(g, {{"n", length}, {"keys", length + more}});
    }
}

BOOST_AUTO_TEST_CASE(many_features_approach_softmax) {
  const auto error = [](std::int64_t features) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 16}), k = b.input("k", f32, {1, 2, n, 16}),
               v = b.input("v", f32, {1, 2, n, 16});
    b.output("softmax", attention(q, k, v));
    b.output("favor", favor_attention(q, k, v, {.features = features}));
    const Results r = run(b.finish(), {}, {{"n", 64}}, {.backend = "simd"}, 3);
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < r.at("favor").size(); ++i) {
      sum += std::pow(r.at("favor")[i] - r.at("softmax")[i], 2);
      size += std::pow(r.at("softmax")[i], 2);
    }
    return std::sqrt(sum / size);
  };
  // The same in NumPy, over five draws: 0.42 to 0.66 with 32 features, 0.06 to 0.18 with 2048.
  BOOST_TEST(error(2048) < 0.2);
  BOOST_TEST(error(2048) < error(32) / 2);
}

/// Exponents far outside the range of exp: what is common to a query, or to all keys, cancels.
BOOST_AUTO_TEST_CASE(common_parts_of_exponents_cancel) {
  for (const bool is_causal : {false, true}) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 9}), k = b.input("k", f32, {1, 2, n, 9}),
               v = b.input("v", f32, {1, 2, n, 5}), q_shift = b.input("q_shift", f32, {1, 2, n, 1}),
               k_shift = b.input("k_shift", f32, {1, 2, 1, 1});
    const LinearAttentionOptions o{.causal = is_causal, .feature = activation::exp};
    b.output("plain", linear_attention(q, k, v, o));
    b.output("shifted", linear_attention(q + scale(q_shift, 300), k + scale(k_shift, 300), v, o));
    const Graph g = b.finish();
    for (const std::string& isa : isas()) {
      const Results r = run(g, {}, {{"n", 70}}, {.backend = "simd", .isa = isa}, 3);
      BOOST_TEST(difference({{"x", r.at("plain")}}, {{"x", r.at("shifted")}}) < 1e-3);
    }
  }
}

BOOST_AUTO_TEST_CASE(hidden_keys_never_reach_an_output) {
  Builder b;
  const Node q = b.input("q", f32, {1, 1, n, 8}), k = b.input("k", f32, {1, 1, n, 8}),
             v = b.input("v", f32, {1, 1, n, 8}), lengths = b.input("lengths", i32, {1});
  b.output("causal", favor_attention(q, k, v, {.features = 12, .causal = true}));
  b.output("full", favor_attention(q, k, v, {.features = 12, .key_lengths = lengths}));
  const Graph g = b.finish();
  const std::size_t rows = 60, bad = 41;
  std::vector<float> x(rows * 8), y = x, z = x;
  Numbers numbers{5};
  for (auto* t : {&x, &y, &z})
    for (float& e : *t) e = static_cast<float>(numbers.number());
  const std::vector<std::int64_t> shape{1, 1, 60, 8}, one{1};
  std::vector<std::int32_t> length{41};
  const auto results = [&](const std::string& isa) {
    std::vector<float> causal_out(rows * 8), full(rows * 8);
    BoundModel model(g, {}, {.backend = "simd", .isa = isa});
    model.bind_dims({{"n", 60}});
    model.run({{"q", dense_view(x.data(), f32, shape)},
               {"k", dense_view(y.data(), f32, shape)},
               {"v", dense_view(z.data(), f32, shape)},
               {"lengths", dense_view(length.data(), i32, one)}},
              {{"causal", dense_view(causal_out.data(), f32, shape)}, {"full", dense_view(full.data(), f32, shape)}});
    causal_out.resize(bad * 8);
    causal_out.insert(causal_out.end(), full.begin(), full.end());
    return causal_out;
  };
  for (const std::string& isa : isas()) {
    const auto clean = results(isa);
    for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const std::vector<float> keys_before = y, values_before = z;
      for (std::size_t i = bad * 8; i < rows * 8; ++i) y[i] = z[i] = poison;
      BOOST_TEST_CONTEXT(isa << " " << poison) {
        const auto got = results(isa);
        for (std::size_t i = 0; i < got.size(); ++i) BOOST_TEST(std::abs(got[i] - clean[i]) < 1e-5f);
      }
      y = keys_before;
      z = values_before;
    }
  }
}

BOOST_AUTO_TEST_CASE(a_state_goes_from_call_to_call) {
  Builder b;
  const Node q = b.input("q", f32, {2, 4, n, 6}), k = b.input("k", f32, {2, 2, n, 6}),
             v = b.input("v", f32, {2, 2, n, 5}), s = b.input("s", f32, {2, 4, 6, 6});
  for (const bool is_causal : {false, true}) {
    const auto r = linear_attention_from(q, k, v, {.causal = is_causal, .eps = 40, .state = s});
    b.output(is_causal ? "causal" : "full", r.out);
    b.output(is_causal ? "causal_state" : "full_state", r.state);
  }
  const Graph g = b.finish();
  for (const std::int64_t length : {0, 1, 16, 49}) check(g, {{"n", length}});
}

/// The state holds all keys of a call, causal or not, and whether there is a query to see them or not.
BOOST_AUTO_TEST_CASE(a_state_takes_keys_without_queries) {
  Builder b;
  const Node q = b.input("q", f32, {2, 2, n, 6}), k = b.input("k", f32, {2, 2, keys, 6}),
             v = b.input("v", f32, {2, 2, keys, 5}), s = b.input("s", f32, {2, 2, 6, 6});
  for (const bool is_causal : {false, true})
    b.output(is_causal ? "causal" : "full", linear_attention_from(q, k, v, {.causal = is_causal, .state = s}).state);
  const Graph g = b.finish();
  for (const std::int64_t length : {0, 1})
    for (const std::int64_t more : {1, 90}) {
      const Lengths dims{{"n", length}, {"keys", more}};
      check(g, dims);
      const Results r = oracle(g, {}, dims, 3);
      BOOST_TEST(difference({{"x", r.at("causal")}}, {{"x", r.at("full")}}) == 0.0);
    }
}

BOOST_AUTO_TEST_CASE(a_state_of_the_model_gives_the_whole_step_by_step) {
  const auto layer = [](bool stepped) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 6}), k = b.input("k", f32, {1, 2, n, 6}),
               v = b.input("v", f32, {1, 2, n, 5});
    LinearAttentionOptions o{.causal = true, .eps = 0.1};
    if (stepped) {
      o.state = b.state("memory", f32, {1, 2, 6, 6});
      const auto r = linear_attention_from(q, k, v, o);
      b.output("y", r.out);
      b.output("kept", append(o.state, r.state, 2, 0));
    } else {
      b.output("y", linear_attention(q, k, v, o));
    }
    return b.finish();
  };
  const Graph whole = layer(false), steps = layer(true);
  BOOST_REQUIRE(!steps.error);
  std::vector<float> q(2 * 23 * 6), k = q, v(2 * 23 * 5), want(2 * 23 * 5), kept(72);
  Numbers numbers{9};
  for (auto* t : {&q, &k, &v})
    for (float& e : *t) e = static_cast<float>(numbers.number());
  const auto part = [](std::vector<float>& t, std::int64_t width, std::int64_t first, std::int64_t count) {
    TensorView x = dense_view(t.data() + first * width, f32, std::vector<std::int64_t>{1, 2, count, width});
    x.strides[0] = 2 * 23 * width;
    x.strides[1] = 23 * width;
    return x;
  };
  for (const char* backend : {"reference", "simd", "tbb"}) {
    BoundModel full(whole, {}, {.backend = backend});
    full.bind_dims({{"n", 23}});
    full.run({{"q", part(q, 6, 0, 23)}, {"k", part(k, 6, 0, 23)}, {"v", part(v, 5, 0, 23)}},
             {{"y", part(want, 5, 0, 23)}});
    BoundModel model(steps, {}, {.backend = backend});
    std::vector<float> got(want.size());
    std::int64_t at = 0;
    for (const std::int64_t count : {1, 12, 0, 10}) {
      model.bind_dims({{"n", count}});
      model.run({{"q", part(q, 6, at, count)}, {"k", part(k, 6, at, count)}, {"v", part(v, 5, at, count)}},
                {{"y", part(got, 5, at, count)},
                 {"kept", dense_view(kept.data(), f32, std::vector<std::int64_t>{1, 2, 6, 6})}});
      at += count;
    }
    for (std::size_t i = 0; i < want.size(); ++i) BOOST_TEST(std::abs(want[i] - got[i]) < 1e-5f);
  }
}

BOOST_AUTO_TEST_CASE(additive_and_bilinear_attention) {
  for (const std::int64_t length : {0, 1, 15, 33, 60})
    for (const std::int64_t width : {1, 8, 19}) {
      Builder b;
      const Node q = b.input("q", f32, {2, n, 6}), k = b.input("k", f32, {2, keys, 9}),
                 v = b.input("v", f32, {2, keys, 5}), x = b.input("x", f32, {2, 3, n, width}),
                 y = b.input("y", f32, {2, 3, keys, width}), weight = b.input("weight", f32, {width});
      b.output("scores", additive_scores(x, y, weight));
      b.output("additive", additive_attention("a", q, k, v, {.width = width}));
      b.output("additive_causal", additive_attention("b", q, k, v, {.width = width, .mask = causal}));
      b.output("bilinear", bilinear_attention("c", q, k, v));
      b.output("bilinear_window", bilinear_attention("d", q, k, v, {.mask = window(3, 1), .scale = 0.5}));
      check(b.finish(), {{"n", length}, {"keys", length + 4}});
    }
}

BOOST_AUTO_TEST_CASE(no_block_of_features_is_held) {
  // Neither scores × features nor the scores themselves: projections, and what leads in and out of heads.
  Builder b;
  const Node q = b.input("q", f32, {1, n, 16});
  b.output("y", additive_attention("a", q, q, q, {.width = 64}));
  const Graph g = b.finish();
  const Parameters parameters = Parameters::random(g, 1, {{"n", 512}});
  BoundModel model(g, parameters, {.backend = "simd"});
  model.bind_dims({{"n", 512}});
  BOOST_TEST(model.planned_bytes() < 4u * 512 * 64 * 4);
  BOOST_TEST(model.workspace_bytes() < 512u * 512 * 4);
}

BOOST_AUTO_TEST_CASE(wrong_uses_are_told) {
  const auto mistake = [](auto make) {
    Builder b;
    const Node q = b.input("q", f32, {1, 2, n, 6}), s = b.input("s", f32, {1, 2, 6, 6});
    b.output("y", make(q, s));
    const Graph g = b.finish();
    return std::string(g.strings[g.error.got]) + " / " + std::string(g.strings[g.error.expected]);
  };
  BOOST_TEST(mistake([](Node q, Node) { return favor_attention(q, q, q, {.features = 0}); }) ==
             "0 features of 6 / at least 1 of each");
  BOOST_TEST(mistake([](Node q, Node s) {
               return linear_attention(q, q, q, {.feature = activation::exp, .state = s});
             }) == "state [1, 2, 6, 6] / [1, 2, 6, 8]");
  BOOST_TEST(mistake([](Node q, Node) { return linear_attention(q, q, q, {.feature = activation::exp, .eps = 1}); }) ==
             "an eps with feature exp / eps 0");
  BOOST_TEST(mistake([](Node q, Node s) { return linear_attention(q, q, q, {.state = s}); }) ==
             "state [1, 2, 6, 6] / [1, 2, 6, 7]");
  BOOST_TEST(mistake([](Node q, Node s) { return additive_scores(q, q, s); }) ==
             "q [1, 2, n, 6], k [1, 2, n, 6] / q [..., n, width], k [..., m, width] and v [width]");
}

BOOST_AUTO_TEST_SUITE_END()

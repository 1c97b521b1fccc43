// Rotary positions on every ISA against float64, and what they mean.

#include "op_check.hpp"

using namespace treadle;
using namespace treadle::test;

namespace {

const DimSpec past = dim("past");

}  // namespace

BOOST_AUTO_TEST_SUITE(rotary_positions)

BOOST_AUTO_TEST_CASE(every_width_and_layout) {
  for (const std::int64_t width : {2, 6, 8, 15, 16, 34, 64, 66}) {
    Builder b;
    const Node x = b.input("x", f32, {2, 3, n, width});
    for (const rope_layout layout : {rope_layout::half, rope_layout::interleaved}) {
      const bool half = layout == rope_layout::half;
      const std::int64_t all = width / 2 * 2;
      b.output(half ? "half" : "pairs", rope(x, {.layout = layout, .rotary_dim = all}));
      b.output(half ? "half_part" : "pairs_part", rope(x, {.layout = layout, .rotary_dim = all > 6 ? 6 : 2}));
      b.output(half ? "half_base" : "pairs_base", rope(x, {.base = 500, .layout = layout, .rotary_dim = all}));
    }
    const Graph g = b.finish();
    for (const std::int64_t length : {0, 1, 5}) BOOST_TEST_CONTEXT(width << " channels") check(g, {{"n", length}});
  }
}

BOOST_AUTO_TEST_CASE(offsets_and_given_positions) {
  Builder b;
  const Node x = b.input("x", f32, {2, 3, n, 12}), p = b.input("p", i32, {n}), own = b.input("own", i64, {2, n}),
             unused = b.input("unused", f32, {past});
  b.output("offset", rope(x, {.offset = past}));
  b.output("shared", rope(x, {.positions = p}));
  b.output("own", rope(x, {.layout = rope_layout::interleaved, .offset = 7, .positions = own}));
  b.output("again", rope(scale(x, 2), {.positions = p}));
  b.output("unused", unused);
  const Graph g = b.finish();
  for (const std::int64_t length : {0, 1, 33}) check(g, {{"n", length}, {"past", 1000}});
}

BOOST_AUTO_TEST_CASE(late_positions_keep_their_digits) {
  // 2^24 + 1 is no float: angles made in single precision would be wrong by whole radians.
  Builder b;
  const Node x = b.input("x", f32, {1, 1, n, 64}), p = b.input("p", i64, {n});
  b.output("y", rope(x, {.positions = p}));
  b.output("z", rope(x, {.offset = 16777217}));
  const Graph g = b.finish();
  check(g, {{"n", 3}}, 1e-6);
  BoundModel model(g, {}, {.backend = "simd"});
  model.bind_dims({{"n", 3}});
  std::vector<float> in(3 * 64, 1.0f), y(3 * 64), z(3 * 64);
  std::vector<std::int64_t> positions{16777217, 16777218, 16777219};
  const std::vector<std::int64_t> shape{1, 1, 3, 64}, length{3};
  model.run({{"x", dense_view(in.data(), f32, shape)}, {"p", dense_view(positions.data(), i64, length)}},
            {{"y", dense_view(y.data(), f32, shape)}, {"z", dense_view(z.data(), f32, shape)}});
  for (std::size_t i = 0; i < 32; ++i) {
    const double angle = 16777217.0 * std::pow(10000.0, -2.0 * static_cast<double>(i) / 64);
    BOOST_TEST(std::abs(static_cast<double>(y[i]) - (std::cos(angle) - std::sin(angle))) < 1e-6);
  }
  BOOST_TEST(y == z, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(scores_depend_on_distances_alone) {
  Builder b;
  const Node q = b.input("q", f32, {1, 2, n, 16}), k = b.input("k", f32, {1, 2, n, 16}),
             unused = b.input("unused", f32, {past});
  b.output("near", matmul(rope(q), transpose(rope(k))));
  b.output("far", matmul(rope(q, {.offset = past}), transpose(rope(k, {.offset = past}))));
  b.output("other", matmul(rope(q, {.offset = past}), transpose(rope(k))));
  b.output("unused", unused);
  const Results r = run(b.finish(), {}, {{"n", 9}, {"past", 123}}, {.backend = "simd"}, 3);
  BOOST_TEST(difference({{"x", r.at("near")}}, {{"x", r.at("far")}}) < 1e-5);
  BOOST_TEST(difference({{"x", r.at("near")}}, {{"x", r.at("other")}}) > 1e-2);
}

BOOST_AUTO_TEST_CASE(every_scaling) {
  const RopeScaling scalings[] = {
      linear_scaling(3),          ntk_scaling(4),
      dynamic_ntk_scaling(2, 16), dynamic_ntk_scaling(2, 16, n + 40),
      yarn_scaling(4, 64),        yarn_scaling(8, 64, {.beta_fast = 8, .beta_slow = 2, .attention_factor = 1.25}),
      llama3_scaling(8, 128)};
  Builder b;
  const Node x = b.input("x", f32, {2, 3, n, 20}), p = b.input("p", i32, {n});
  int i = 0;
  for (const RopeScaling& scaling : scalings) {
    const Text name = Text("y").append(i);
    b.output(name.view(), rope(x, {.base = 500,
                                   .layout = i % 2 ? rope_layout::half : rope_layout::interleaved,
                                   .offset = 3,
                                   .rotary_dim = i % 3 ? 20 : 12,
                                   .scaling = scaling}));
    ++i;
  }
  b.output("given", rope(x, {.positions = p, .scaling = yarn_scaling(2, 32)}));
  b.output("given_length", rope(x, {.positions = p, .scaling = dynamic_ntk_scaling(2, 4, n)}));
  const Graph g = b.finish();
  for (const std::int64_t length : {0, 1, 15, 40}) check(g, {{"n", length}}, 1e-5);
}

BOOST_AUTO_TEST_CASE(scaled_angles) {
  // Linear by 2 at position 2p is plain at p; a magnitude multiplies what turns and nothing else.
  Builder b;
  const Node x = b.input("x", f32, {1, 1, 1, 8});
  b.output("plain", rope(x, {.offset = 7}));
  b.output("linear", rope(x, {.offset = 14, .scaling = linear_scaling(2)}));
  b.output("turned", rope(x, {.offset = 7, .rotary_dim = 4}));
  b.output("larger", rope(x, {.offset = 7, .rotary_dim = 4, .scaling = yarn_scaling(1, 64, {.attention_factor = 3})}));
  Results r = run(b.finish(), {}, {}, {.backend = "simd"}, 3);
  BOOST_TEST(r["plain"] == r["linear"], boost::test_tools::per_element());
  for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(std::abs(r["larger"][i] - (i < 4 ? 3 : 1) * r["turned"][i]) < 1e-6);
}

BOOST_AUTO_TEST_CASE(bad_scalings) {
  const auto mistake = [](RopeOptions o) {
    Builder b;
    const Node x = b.input("x", f32, {1, 1, n, 8});
    if (o.rotary_dim == 8) o.positions = b.input("p", i32, {n});
    b.output("y", rope(x, o));
    const Graph g = b.finish();
    return g.error ? std::string(g.strings[g.error.got]) + " | " + std::string(g.strings[g.error.expected]) : "";
  };
  const std::string factor = "the factor of the scaling | a finite factor of at least 1";
  for (const double f : {0.0, 0.5, -1.0, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    BOOST_TEST(mistake({.scaling = linear_scaling(f)}) == factor);
    BOOST_TEST(mistake({.scaling = yarn_scaling(f, 10)}) == factor);
  }
  BOOST_TEST(mistake({.base = 0}) == "the base | a finite base above 0");
  BOOST_TEST(mistake({.base = 1, .scaling = yarn_scaling(2, 10)}) == "the base | a base above 1 for this scaling");
  BOOST_TEST(mistake({.scaling = dynamic_ntk_scaling(2, 0)}) == "original_length of the scaling | at least 1 position");
  BOOST_TEST(mistake({.scaling = llama3_scaling(8, 100, 4, 4)}) ==
             "the bounds of the scaling | 0 < low < high, both finite");
  BOOST_TEST(mistake({.scaling = yarn_scaling(2, 10, {.attention_factor = -1})}) ==
             "the magnitude of the scaling | a finite magnitude above 0, or 0 for the default");
  BOOST_TEST(mistake({.rotary_dim = 8, .scaling = dynamic_ntk_scaling(2, 10)}) ==
             "dynamic_ntk with given positions | a length of the scaling");
}

BOOST_AUTO_TEST_CASE(permuted_weights_give_the_same_scores_in_the_other_layout) {
  const auto scores = [](rope_layout layout) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 16});
    const auto turned = [&](const char* leaf) {
      return rope(split_heads(linear(leaf, x, {.width = 30}), 3), {.layout = layout, .rotary_dim = 8});
    };
    b.output("y", matmul(turned("q"), transpose(turned("k"))));
    return b.finish();
  };
  const Graph half = scores(rope_layout::half), pairs = scores(rope_layout::interleaved);
  const Parameters p = Parameters::random(half, 4);
  Parameters permuted;
  const auto rows = rope_permutation(3, 10, 8, rope_layout::half, rope_layout::interleaved);
  for (const std::string& name : p.names()) {
    const TensorView t = p.find(name);
    permuted.own(name, {t.shape.begin(), t.shape.begin() + t.rank},
                 permuted_rows({t.as<const float>(), static_cast<std::size_t>(t.size())}, rows));
  }
  const Results want = run(half, p, {{"n", 9}}, {.backend = "simd"}, 6);
  BOOST_TEST(difference(run(pairs, permuted, {{"n", 9}}, {.backend = "simd"}, 6), want) < 1e-6);
  BOOST_TEST(difference(run(pairs, p, {{"n", 9}}, {.backend = "simd"}, 6), want) > 1e-3);
}

BOOST_AUTO_TEST_CASE(layers_share_their_angles) {
  Builder b;
  Node x = b.input("x", f32, {2, n, 24});
  const Node p = b.input("p", i32, {2, n});
  x = repeat("h", 3, x, [&](Node y) {
    return y + self_attention("attn", y, {.heads = 2, .mask = causal, .rope = RopeOptions{.positions = p}});
  });
  x = repeat("i", 2, x, [&](Node y) {
    return y + self_attention("attn", y, {.heads = 2, .mask = causal, .rope = RopeOptions{.rotary_dim = 4}});
  });
  b.output("y", x);
  const Graph g = b.finish();
  check(g, {{"n", 17}}, 1e-4);
  const Parameters parameters = Parameters::random(g, 1, {{"n", 17}});
  BoundModel model(g, parameters, {.backend = "simd"});
  model.bind_dims({{"n", 17}});
  int tables = 0, turns = 0;
  for (const StepInfo& s : model.steps()) {
    tables += s.kernel == "rotary_table";
    turns += s.kernel == "rope";
  }
  BOOST_TEST(tables == 1);
  BOOST_TEST(turns == 10);
}

BOOST_AUTO_TEST_CASE(a_cache_step_by_step_gives_the_whole) {
  const auto layer = [](bool cached) {
    Builder b;
    const Node x = b.input("x", f32, {1, n, 16});
    const DimSpec offset = cached ? past : DimSpec(0);
    const auto heads = [&](const char* leaf) { return split_heads(linear(leaf, x, {.width = 16, .bias = false}), 2); };
    const Node q = rope(heads("q"), {.offset = offset});
    Node k = rope(heads("k"), {.offset = offset}), v = heads("v");
    if (cached) {
      k = append(b.state("keys", f32, {1, 2, 24, 8}), k, 2, past);
      v = append(b.state("values", f32, {1, 2, 24, 8}), v, 2, past);
      b.output("past", b.input("held", f32, {past}));
    }
    b.output("y", merge_heads(attention(q, k, v, {.mask = causal})));
    return b.finish();
  };
  const Graph whole = layer(false), steps = layer(true);
  const Parameters parameters = Parameters::random(whole, 4, {{"n", 11}});
  std::vector<float> x(11 * 16), want(11 * 16), got(11 * 16);
  Numbers numbers{8};
  for (float& v : x) v = static_cast<float>(numbers.number());
  for (const std::string& isa : isas()) {
    BoundModel full(whole, parameters, {.backend = "simd", .isa = isa});
    full.bind_dims({{"n", 11}});
    const std::vector<std::int64_t> shape{1, 11, 16};
    full.run({{"x", dense_view(x.data(), f32, shape)}}, {{"y", dense_view(want.data(), f32, shape)}});
    BoundModel model(steps, parameters, {.backend = "simd", .isa = isa});
    std::int64_t at = 0;
    for (const std::int64_t count : {3, 1, 5, 2}) {
      model.bind_dims({{"n", count}, {"past", at}});
      const std::vector<std::int64_t> part{1, count, 16}, held{at};
      std::vector<float> zeros(16);
      model.run({{"x", dense_view(x.data() + at * 16, f32, part)}, {"held", dense_view(zeros.data(), f32, held)}},
                {{"y", dense_view(got.data() + at * 16, f32, part)}});
      at += count;
    }
    for (std::size_t i = 0; i < want.size(); ++i) BOOST_TEST(std::abs(want[i] - got[i]) < 1e-5f);
  }
}

BOOST_AUTO_TEST_CASE(wrong_uses_are_told) {
  const auto mistake = [](auto make) {
    Builder b;
    const Node x = b.input("x", f32, {2, 3, n, 10}), p = b.input("p", i32, {3}), q = b.input("q", f32, {n});
    b.output("y", make(b, x, p, q));
    const Graph g = b.finish();
    return std::string(g.strings[g.error.got]) + " / " + std::string(g.strings[g.error.expected]);
  };
  using B = Builder&;
  BOOST_TEST(mistake([](B, Node x, Node, Node) { return rope(x, {.rotary_dim = 5}); }) ==
             "rotary_dim 5 / an even number from 2 to head_dim 10");
  BOOST_TEST(mistake([](B, Node x, Node, Node) { return rope(x, {.rotary_dim = 12}); }) ==
             "rotary_dim 12 / an even number from 2 to head_dim 10");
  BOOST_TEST(mistake([](B, Node x, Node, Node) { return rope(merge_heads(x)); }) ==
             "[2, n, 30] / [batch, heads, length, head_dim]");
  BOOST_TEST(mistake([](B, Node x, Node p, Node) { return rope(x, {.positions = p}); }) ==
             "positions [3] / [length] or [batch, length] of x");
  BOOST_TEST(mistake([](B, Node x, Node, Node q) { return rope(x, {.positions = q}); }) ==
             "f32 / i32 or i64 positions");
}

BOOST_AUTO_TEST_SUITE_END()

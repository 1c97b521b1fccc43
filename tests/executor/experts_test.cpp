// Mixture of experts and gated feed-forward on every ISA against float64; only chosen experts are computed.

#include "op_check.hpp"

#include <limits>

using namespace treadle;
using namespace treadle::test;

namespace {

Graph layer(MoeOptions o, std::int64_t width = 19) {
  Builder b;
  b.output("y", moe("moe", b.input("x", f32, {2, n, width}), o));
  return b.finish();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mixture_of_experts)

BOOST_AUTO_TEST_CASE(awkward_sizes) {
  for (const std::int64_t length : {0, 1, 8, 17, 80})
    for (const std::int64_t experts : {1, 3, 8})
      for (const std::int64_t top_k : {1, 2, 3}) {
        if (top_k > experts) continue;
        BOOST_TEST_CONTEXT(length << " tokens, " << top_k << " of " << experts) {
          check(
              layer(
                  {.experts = experts, .top_k = top_k, .hidden = 33, .gated = top_k == 2, .renormalise = length != 8}),
              {{"n", length}});
        }
      }
}

BOOST_AUTO_TEST_CASE(wider_than_a_work_item) {
  check(layer({.experts = 4, .top_k = 2, .hidden = 290, .activation = gelu}, 65), {{"n", 150}});
}

BOOST_AUTO_TEST_CASE(only_chosen_experts_are_computed) {
  const Graph g = layer({.experts = 7, .top_k = 2, .hidden = 200, .gated = true});
  const Lengths dims{{"n", 45}};
  const Parameters parameters = Parameters::random(g, 5, values_of(dims));
  for (const char* backend : {"simd", "tbb"}) {
    BoundModel model(g, parameters, {.backend = backend});
    model.bind_dims(dims);
    const Tensors in = inputs_of(g, dims, 3);
    Tensors out = outputs_of(g, dims);
    for (int i = 0; i < 2; ++i) {
      model.run(named(in), named(out));
      int products = 0;
      for (const StepInfo& s : model.steps()) {
        if (s.kernel != "expert_linear") continue;
        ++products;
        BOOST_TEST(s.expert_rows == 2 * 45 * 2);
      }
      BOOST_TEST(products == 3);
    }
  }
}

BOOST_AUTO_TEST_CASE(experts_that_nobody_chose_are_not_read) {
  // Expert 2 never wins and holds NaN; expert 1 is chosen by all.
  const Graph g = layer({.experts = 3, .top_k = 1, .hidden = 5}, 4);
  Parameters parameters;
  parameters.own("moe.router.weight", {3, 4}, {0, 0, 0, 0, 9, 9, 9, 9, -9, -9, -9, -9});
  std::vector<float> up(3 * 5 * 4, 0.5f), down(3 * 4 * 5, 0.25f);
  std::fill(up.begin() + 2 * 20, up.end(), std::numeric_limits<float>::quiet_NaN());
  std::fill(down.begin() + 2 * 20, down.end(), std::numeric_limits<float>::quiet_NaN());
  parameters.own("moe.experts.up_proj", {3, 5, 4}, up);
  parameters.own("moe.experts.down_proj", {3, 4, 5}, down);
  std::vector<float> x(2 * 3 * 4, 1.0f), y(2 * 3 * 4);
  const std::vector<std::int64_t> shape{2, 3, 4};
  for (const std::string& isa : isas()) {
    BoundModel model(g, parameters, {.backend = "simd", .isa = isa});
    model.bind_dims({{"n", 3}});
    model.run({{"x", dense_view(x.data(), f32, shape)}}, {{"y", dense_view(y.data(), f32, shape)}});
    const double h = 2.0 / (1 + std::exp(-2.0));
    for (const float v : y) BOOST_TEST(std::abs(static_cast<double>(v) - 5 * 0.25 * h) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(equal_logits_go_to_the_first) {
  const Graph g = layer({.experts = 4, .top_k = 2, .hidden = 3, .activation = relu}, 2);
  Parameters parameters;
  parameters.own("moe.router.weight", {4, 2}, std::vector<float>(8, 0.0f));
  std::vector<float> up(4 * 3 * 2), down(4 * 2 * 3, 1.0f);
  for (std::size_t i = 0; i < up.size(); ++i) up[i] = static_cast<float>(i / 6 + 1);
  parameters.own("moe.experts.up_proj", {4, 3, 2}, up);
  parameters.own("moe.experts.down_proj", {4, 2, 3}, down);
  std::vector<float> x(2 * 2, 1.0f), y(2 * 2);
  const std::vector<std::int64_t> shape{2, 1, 2};
  for (const char* backend : {"reference", "simd"}) {
    BoundModel model(g, parameters, {.backend = backend});
    model.bind_dims({{"n", 1}});
    model.run({{"x", dense_view(x.data(), f32, shape)}}, {{"y", dense_view(y.data(), f32, shape)}});
    for (const float v : y) BOOST_TEST(v == 0.5f * 6 + 0.5f * 12);
  }
}

BOOST_AUTO_TEST_CASE(gated_layers) {
  for (const activation f : {silu, gelu, relu})
    for (const std::int64_t length : {0, 1, 33}) {
      Builder b;
      const Node x = b.input("x", f32, {2, n, 19});
      b.output("y", gated_ffn("mlp", x, {.hidden = 50, .activation = f}));
      b.output("z", gated_ffn("other", x, {.hidden = 7, .activation = f, .bias = true}));
      check(b.finish(), {{"n", length}});
    }
}

BOOST_AUTO_TEST_CASE(wrong_uses_are_told) {
  const auto mistake = [](auto make) {
    Builder b;
    b.output("y", make(b.input("x", f32, {2, n, 10})));
    const Graph g = b.finish();
    return std::string(g.strings[g.error.got]) + " / " + std::string(g.strings[g.error.expected]);
  };
  BOOST_TEST(mistake([](Node x) { return moe("m", x, {.experts = 4, .top_k = 5, .hidden = 8}); }) ==
             "top_k 5 / 1 to 4 experts");
  BOOST_TEST(mistake([](Node x) { return moe("m", x, {.experts = 4, .top_k = 0, .hidden = 8}); }) ==
             "top_k 0 / 1 to 4 experts");
  BOOST_TEST(mistake([](Node x) { return moe("m", x, {.experts = 0, .top_k = 1, .hidden = 8}); }) ==
             "0 experts of hidden width 8 / at least 1 of each");
  BOOST_TEST(mistake([](Node x) { return gated_ffn("m", x, {}); }) == "width 0 / a width of at least 1");
}

BOOST_AUTO_TEST_CASE(computed_weights_are_refused) {
  Builder b;
  const Node x = b.input("x", f32, {n, 4}), router = b.parameter("router", {b.dim_number(2), b.dim_number(4)}),
             up = b.input("up", f32, {2, 3, 4}), down = b.input("down", f32, {2, 4, 3});
  b.output("y", moe_with(x, router, up, down, {.top_k = 1}));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  const Parameters parameters = Parameters::random(g, 1, {{"n", 2}});
  const std::string message = error_of([&] { BoundModel(g, parameters, {.backend = "simd"}).bind_dims({{"n", 2}}); });
  BOOST_TEST(message.find("so they must be parameters") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

// Names, random values and look-up of parameters.

#include "arrays.hpp"

#include <treadle/backends/names.hpp>
#include <treadle/ops/rules.hpp>

#include <numeric>

using namespace treadle;
using namespace treadle::test;

namespace {

Graph small_model() {
  Builder g;
  Node x = g.input("x", f32, {batch, 4});
  x = repeat("outer", 2, x, [](Node y) {
    y = repeat("inner", 3, y, [](Node z) { return linear("up", z, {.width = 4}); });
    return layer_norm("norm", y);
  });
  g.output("y", linear("head", x, {.width = 2, .bias = false}));
  return g.finish();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parameters)

BOOST_AUTO_TEST_CASE(names_count_the_iterations_of_every_repeat) {
  const Graph g = small_model();
  const auto infos = parameter_names(g);
  std::vector<std::string> names;
  for (const auto& p : infos) names.push_back(p.name);
  BOOST_TEST(infos.size() == 2u * 3 * 2 + 2 * 2 + 1);
  const auto has = [&](const std::string& n) { return std::find(names.begin(), names.end(), n) != names.end(); };
  BOOST_TEST(has("outer.1.inner.2.up.weight"));
  BOOST_TEST(has("outer.0.inner.0.up.bias"));
  BOOST_TEST(has("outer.1.norm.weight"));
  BOOST_TEST(has("head.weight"));
  BOOST_TEST(!has("outer.2.norm.weight"));
  BOOST_TEST(names[0] == "outer.0.inner.0.up.weight");
  BOOST_TEST(names[1] == "outer.0.inner.1.up.weight");
  BOOST_TEST(shape_text(infos.back().shape) == "[2, 4]");
}

BOOST_AUTO_TEST_CASE(random_values_depend_on_name_and_seed_alone) {
  const Parameters a = Parameters::random(small_model(), 7), b = Parameters::random(small_model(), 7);
  const Parameters c = Parameters::random(small_model(), 8);
  BOOST_TEST(a.size() == 17u);
  const auto first = [](const Parameters& p, const char* n) { return p.find(n).as<const float>()[0]; };
  BOOST_TEST(first(a, "head.weight") == first(b, "head.weight"));
  BOOST_TEST(first(a, "head.weight") != first(c, "head.weight"));
  BOOST_TEST(first(a, "outer.0.inner.0.up.weight") != first(a, "outer.0.inner.1.up.weight"));
  BOOST_TEST(first(a, "outer.1.norm.weight") == 1.0f);
  BOOST_TEST(std::abs(first(a, "outer.1.norm.bias")) < 0.2f);
  BOOST_TEST(first(a, "outer.1.norm.bias") != 0.0f);

  // Another graph with one parameter of the same name and shape.
  Builder g;
  g.output("y", linear("head", g.input("x", f32, {1, 4}), {.width = 2}));
  BOOST_TEST(first(Parameters::random(g.finish(), 7), "head.weight") == first(a, "head.weight"));
}

BOOST_AUTO_TEST_CASE(the_generator_gives_the_published_numbers) {
  // splitmix64 from seed 1234567, as in the test vectors of Vigna's reference implementation.
  BOOST_TEST(splitmix64(1234567, 0) == 6457827717110365317u);
  BOOST_TEST(splitmix64(1234567, 1) == 3203168211198807973u);
  BOOST_TEST(splitmix64(1234567, 2) == 9817491932198370423u);
  std::vector<float> data(40000);
  fill_normal(data, 3);
  const double mean = std::accumulate(data.begin(), data.end(), 0.0) / 40000;
  double variance = 0;
  for (const float v : data) variance += (v - mean) * (v - mean) / 40000;
  BOOST_TEST(std::abs(mean) < 0.02);
  BOOST_TEST(std::abs(variance - 1) < 0.03);
  std::vector<float> odd(7);
  fill_normal(odd, 3);
  BOOST_TEST(odd[6] == data[6]);
  std::vector<std::int32_t> ids(1000);
  fill_integers<std::int32_t>(ids, 5, 2, 6);
  BOOST_TEST(*std::min_element(ids.begin(), ids.end()) == 2);
  BOOST_TEST(*std::max_element(ids.begin(), ids.end()) == 5);
}

BOOST_AUTO_TEST_CASE(tensors_are_borrowed_or_owned) {
  Parameters p;
  std::vector<float> mine{1, 2, 3, 4};
  const Shape shape{2, 2};
  p.set("borrowed", dense_view(mine.data(), DType::f32, shape));
  p.own("owned", {3}, {5, 6, 7});
  BOOST_TEST(p.find("borrowed").as<float>() == mine.data());
  const Parameters copy = p;
  p = {};
  BOOST_TEST(copy.find("owned").as<const float>()[2] == 7.0f);
  BOOST_TEST(!copy.contains("other"));
  BOOST_TEST(
      contains(error_of([&] { p.own("w", {2, 2}, {1}); }), "parameter 'w' has 1 values; its shape [2, 2] holds 4"));
  BOOST_TEST(contains(error_of([&] { p.set("w", dense_view(mine.data(), DType::i32, shape)); }), "parameters are f32"));
}

BOOST_AUTO_TEST_CASE(dims_say_what_is_missing) {
  Builder g;
  const Node x = g.input("x", f32, {dim("rows"), dim("rows") + 2});
  g.output("y", x);
  const Graph graph = g.finish();
  const auto shape = graph.view().shape({0, 0});
  BOOST_TEST(shape_text(BoundDims(graph, {{"rows", 5}})(shape)) == "[5, 7]");
  BOOST_TEST(contains(error_of([&] { BoundDims(graph, {})(shape); }), "dim 'rows' has no value"));
  BOOST_TEST(contains(error_of([&] { BoundDims(graph, {{"rows", -1}}); }), "dim 'rows' is -1"));
}

BOOST_AUTO_TEST_SUITE_END()

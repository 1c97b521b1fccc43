// argsort, top_k_mask and pooling over runs, on every ISA against float64 and against what they say.

#include "plain.hpp"

#include <treadle/ops/pool.hpp>

#include <limits>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

/// The graph's output "y" for these numbers in "x".
template <class T>
std::vector<double> result(const Graph& g, std::vector<T> x, DType from, const std::vector<std::int64_t>& shape,
                           DType to, std::string_view backend) {
  std::vector<std::byte> y(x.size() * size_of(to));
  BoundModel model(g, {}, {.backend = backend});
  model.bind_dims({{"n", shape.back()}});
  model.run({{"x", dense_view(x.data(), from, shape)}}, {{"y", dense_view(y.data(), to, shape)}});
  std::vector<double> numbers;
  for (std::size_t i = 0; i < x.size(); ++i)
    numbers.push_back(to == i64 ? static_cast<double>(reinterpret_cast<const std::int64_t*>(y.data())[i])
                                : static_cast<double>(reinterpret_cast<const std::uint8_t*>(y.data())[i]));
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sorting)

BOOST_AUTO_TEST_CASE(argsort_is_stable_with_nan_last) {
  Builder b;
  b.output("y", argsort(b.input("x", f32, {2, n})));
  const Graph g = b.finish();
  const std::vector<float> x{3, nan_value, -1, 3, -infinity, infinity, 0, -0.0f, 0, nan_value, 5, 5};
  for (const std::string_view backend : {"reference", "simd", "tbb"}) {
    const std::vector<double> y = result(g, x, f32, {2, 6}, i64, backend);
    const std::vector<double> want{4, 2, 0, 3, 5, 1, 0, 1, 2, 4, 5, 3};
    BOOST_TEST(y == want, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(argsort_of_integers_and_its_inverse) {
  Builder b;
  const Node x = b.input("x", i32, {3, n}), order = argsort(x);
  b.output("order", order);
  b.output("inverse", argsort(order));
  b.output("sorted", gather(x, order, {.axis = 1, .batch_dims = 1}));
  const Graph g = b.finish();
  for (const std::int64_t length : {0, 1, 2, 100}) {
    const Lengths dims{{"n", length}};
    const Results want = oracle(g, {}, dims, 4),
                  got = run(g, {}, dims, {.backend = "tbb", .threads = 3}, 4, true, true);
    BOOST_TEST(difference(got, want) == 0.0);
    const auto at = [&](const char* name, std::int64_t r, std::int64_t i) {
      return static_cast<std::int64_t>(got.at(name)[static_cast<std::size_t>(r * length + i)]);
    };
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t i = 0; i < length; ++i) {
        BOOST_TEST(at("inverse", r, at("order", r, i)) == i);
        if (i == 0) continue;
        BOOST_TEST(at("sorted", r, i - 1) <= at("sorted", r, i));
        if (at("sorted", r, i - 1) == at("sorted", r, i)) BOOST_TEST(at("order", r, i - 1) < at("order", r, i));
      }
  }
}

BOOST_AUTO_TEST_CASE(top_k_takes_the_first_of_equal_ones) {
  const std::vector<float> x{1, 2, 2, -infinity, 2, 0, -infinity, nan_value, -infinity, 7, infinity, -infinity};
  const auto of = [&](std::int64_t k, std::string_view backend) {
    Builder b;
    b.output("y", top_k_mask(b.input("x", f32, {2, n}), k));
    return result(b.finish(), x, f32, {2, 6}, boolean, backend);
  };
  for (const std::string_view backend : {"reference", "simd", "tbb"}) {
    const std::vector<double> one{0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, two{0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0},
        five{1, 1, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0};
    BOOST_TEST(of(1, backend) == one, boost::test_tools::per_element());
    BOOST_TEST(of(2, backend) == two, boost::test_tools::per_element());
    BOOST_TEST(of(5, backend) == five, boost::test_tools::per_element());
    BOOST_TEST(of(100, backend) == five, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(runs_are_pooled) {
  for (const std::int64_t length : {0, 1, 3, 8, 15, 33})
    for (const std::int64_t each : {1, 4, 40}) {
      Builder b;
      const Node x = b.input("x", f32, {2, 3, n, 17}), rows = b.input("rows", f32, {2, n, 12}),
                 flat = b.input("flat", f32, {n, 5});
      b.output("mean", mean_pooling_of_runs(x, each));
      b.output("max", max_pooling_of_runs(x, each));
      b.output("of_heads", mean_pooling_of_runs(split_heads(rows, 3), each));
      b.output("merged", merge_heads(max_pooling_of_runs(split_heads(rows, 3), each)));
      b.output("flat_runs", mean_pooling_of_runs(flat, each));
      b.output("half", max_pooling_of_runs(rows, ceil_div(n, 2)));  // a run that follows the length
      const Graph g = b.finish();
      BOOST_REQUIRE(!g.error);
      const Lengths dims{{"n", length}};
      BOOST_TEST_CONTEXT(length << " in runs of " << each) {
        check(g, dims);
        const Results r = oracle(g, {}, dims, 21);
        const Cube c = cube_of(inputs_of(g, dims, 21), "x");
        BOOST_TEST(difference({{"a", r.at("mean")}, {"b", r.at("max")}},
                              {{"a", plain_runs(c, each).data}, {"b", plain_runs(c, each, true).data}}) < 1e-12);
      }
    }
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto mistake = [](auto f) {
    Builder b;
    b.output("y", f(b));
    return mistake_of(b.finish());
  };
  BOOST_TEST(mistake([](Builder& b) { return argsort(b.input("x", boolean, {n})); }) == "bool; f32, i32 or i64");
  BOOST_TEST(mistake([](Builder& b) { return argsort(b.input("x", f32, {})); }) == "[]; [..., n]");
  BOOST_TEST(mistake([](Builder& b) { return top_k_mask(b.input("x", f32, {n}), 0); }) == "k 0; at least 1 element");
  BOOST_TEST(mistake([](Builder& b) { return mean_pooling_of_runs(b.input("x", f32, {n, 3}), 0); }) ==
             "runs of 0; runs of at least 1");
}

BOOST_AUTO_TEST_SUITE_END()

#pragma once
// Arrays in tests: made of literals or seeds, compared with a tolerance.

#include <treadle/backends/random_fill.hpp>
#include <treadle/backends/reference/reference.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace treadle::test {

using reference::Array;
using Shape = std::vector<std::int64_t>;

inline Array<double> array(Shape shape, std::vector<double> data) { return {std::move(shape), std::move(data)}; }

/// Normal numbers that are exact in float, so that both precisions start from the same.
template <class T = double>
Array<T> random_array(Shape shape, std::uint64_t seed) {
  std::vector<float> data(static_cast<std::size_t>(reference::elements(shape)));
  fill_normal(data, seed);
  return {std::move(shape), std::vector<T>(data.begin(), data.end())};
}

template <class T>
Array<double> to_double(const Array<T>& a) {
  return {a.shape, std::vector<double>(a.data.begin(), a.data.end())};
}

inline double largest_difference(const Array<double>& a, const Array<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.data.size() && i < b.data.size(); ++i) {
    if (a.data[i] == b.data[i]) continue;  // infinities too
    const double d = std::abs(a.data[i] - b.data[i]);
    if (std::isnan(d)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, d);
  }
  return largest;
}

/// Same shape, and every element within `tolerance`.
inline void check_close(const Array<double>& got, const Array<double>& want, double tolerance = 1e-12) {
  BOOST_TEST(shape_text(got.shape) == shape_text(want.shape));
  BOOST_REQUIRE(got.data.size() == want.data.size());
  BOOST_TEST(largest_difference(got, want) <= tolerance);
}

/// The message of the Error that `f` throws; empty if none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace treadle::test

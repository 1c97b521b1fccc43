// Reference formulas of argsort and top_k_mask.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace treadle::reference {
namespace {

/// Ascending, NaN behind all numbers.
template <class T>
bool before(T a, T b) {
  return a < b || (!std::isnan(a) && std::isnan(b));
}

/// Indices of a row by value, equal ones in order; from the largest on if `down`.
template <class T>
std::vector<std::size_t> order(const T* row, std::int64_t width, bool down) {
  std::vector<std::size_t> ids(static_cast<std::size_t>(width));
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  std::sort(ids.begin(), ids.end(), [&](std::size_t i, std::size_t j) {
    if (before(row[i], row[j])) return !down;
    if (before(row[j], row[i])) return down;
    return i < j;
  });
  return ids;
}

}  // namespace

template <class T>
Array<T> argsort(const Array<T>& x) {
  Array<T> out = zeros<T>(x.shape);
  const std::int64_t width = x.shape.back();
  for (std::int64_t r = 0; r < rows_of(x); ++r) {
    const auto ids = order(x.data.data() + r * width, width, false);
    std::transform(ids.begin(), ids.end(), out.data.begin() + r * width,
                   [](std::size_t i) { return static_cast<T>(i); });
  }
  return out;
}

template <class T>
Array<T> top_k_mask(const Array<T>& x, std::int64_t k) {
  Array<T> out = zeros<T>(x.shape);
  const std::int64_t width = x.shape.back();
  for (std::int64_t r = 0; r < rows_of(x); ++r) {
    const T* row = x.data.data() + r * width;
    std::vector<std::size_t> ids = order(row, width, true);
    ids.resize(static_cast<std::size_t>(std::min(k, width)));
    for (const std::size_t i : ids)
      if (std::isnan(row[i]) || row[i] > -std::numeric_limits<T>::infinity())
        out.data[static_cast<std::size_t>(r * width) + i] = 1;
  }
  return out;
}

template Array<float> argsort(const Array<float>&);
template Array<double> argsort(const Array<double>&);
template Array<float> top_k_mask(const Array<float>&, std::int64_t);
template Array<double> top_k_mask(const Array<double>&, std::int64_t);

}  // namespace treadle::reference

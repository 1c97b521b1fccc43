// Reference formula of softmax.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::reference {

/// exp(x − max) / Σ exp(x − max) over the last dim. A row of only −inf has nothing to choose from and gives 0.
template <class T>
Array<T> softmax(const Array<T>& x) {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  Array<T> out = zeros<T>(x.shape);
  const auto from = shaped<2>(x, {rows, width});
  auto to = shaped<2>(out, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    T largest = -infinity, sum = 0;
    bool empty = true;
    for (std::int64_t c = 0; c < width; ++c) {
      largest = std::max(largest, from(r, c));
      empty = empty && from(r, c) == -infinity;
    }
    if (empty) continue;
    for (std::int64_t c = 0; c < width; ++c) sum += to(r, c) = std::exp(from(r, c) - largest);
    for (std::int64_t c = 0; c < width; ++c) to(r, c) /= sum;
  }
  return out;
}

template Array<float> softmax(const Array<float>&);
template Array<double> softmax(const Array<double>&);

}  // namespace treadle::reference

#pragma once
// Inside ops/*.cpp only: reference arrays as xtensor expressions, so that formulas read like formulas. Other headers
// must not include this one (xtensor costs most of a second per file).

#include <treadle/ops/reference.hpp>
#include <treadle/ops/xtensor_clang.hpp>

#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace treadle::reference {

/// The whole array, of any rank: for broadcasting, transposing, slicing.
template <class T>
auto dynamic(const Array<T>& a) {
  return xt::adapt(a.data, std::vector<std::size_t>(a.shape.begin(), a.shape.end()));
}
template <class T>
auto dynamic(Array<T>& a) {
  return xt::adapt(a.data, std::vector<std::size_t>(a.shape.begin(), a.shape.end()));
}

/// The array with a fixed rank, which indexes without loops: `auto x = shaped<2>(a, {rows, width}); x(i, j)`.
template <std::size_t Rank, class T>
auto shaped(const Array<T>& a, const std::array<std::int64_t, Rank>& shape) {
  std::array<std::size_t, Rank> sizes;
  for (std::size_t i = 0; i < Rank; ++i) sizes[i] = static_cast<std::size_t>(shape[i]);
  return xt::adapt(a.data, sizes);
}
template <std::size_t Rank, class T>
auto shaped(Array<T>& a, const std::array<std::int64_t, Rank>& shape) {
  std::array<std::size_t, Rank> sizes;
  for (std::size_t i = 0; i < Rank; ++i) sizes[i] = static_cast<std::size_t>(shape[i]);
  return xt::adapt(a.data, sizes);
}

/// Evaluates an expression, once, into an array.
template <class T, class Expression>
Array<T> collect(const Expression& e) {
  const xt::xarray<T, xt::layout_type::row_major> values = e;
  Array<T> out;
  for (const auto d : values.shape()) out.shape.push_back(static_cast<std::int64_t>(d));
  out.data.assign(values.data(), values.data() + values.size());
  return out;
}

/// All dims but the last multiplied: how many rows an op over the last dim has.
template <class T>
std::int64_t rows_of(const Array<T>& a) {
  std::int64_t n = 1;
  for (std::size_t i = 0; i + 1 < a.shape.size(); ++i) n *= a.shape[i];
  return n;
}

/// NumPy's broadcast shape; the shapes must fit.
inline std::vector<std::int64_t> broadcast_shape(const std::vector<std::int64_t>& a,
                                                 const std::vector<std::int64_t>& b) {
  const std::vector<std::int64_t>& longer = a.size() < b.size() ? b : a;
  const std::vector<std::int64_t>& shorter = a.size() < b.size() ? a : b;
  std::vector<std::int64_t> out = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& d = out[out.size() - 1 - i];
    const std::int64_t other = shorter[shorter.size() - 1 - i];
    if (d == 1) d = other;
  }
  return out;
}

/// An optional array read at (b, h, q, k), broadcast from the right; absent gives `otherwise`.
template <class T>
class Broadcast4 {
 public:
  Broadcast4(const Array<T>* a, T otherwise) : data_(a != nullptr ? a->data.data() : nullptr), otherwise_(otherwise) {
    if (a == nullptr) return;
    std::ptrdiff_t stride = 1;
    for (std::size_t i = 0; i < a->shape.size() && i < 4; ++i) {
      const auto d = static_cast<std::ptrdiff_t>(a->shape[a->shape.size() - 1 - i]);
      strides_[3 - i] = d == 1 ? 0 : stride;
      stride *= d;
    }
  }
  T operator()(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
    return data_ == nullptr ? otherwise_ : data_[b * strides_[0] + h * strides_[1] + q * strides_[2] + k * strides_[3]];
  }

 private:
  const T* data_;
  T otherwise_;
  std::array<std::ptrdiff_t, 4> strides_{};
};

}  // namespace treadle::reference

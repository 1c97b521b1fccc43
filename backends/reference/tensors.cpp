// Between reference arrays and strided views of any dtype.

#include <treadle/backends/reference/reference.hpp>

#include <cmath>
#include <limits>

namespace treadle::reference {
namespace {

/// Calls f(position in row-major order, offset in elements) for every element of the view.
template <class F>
void for_each_offset(const TensorView& view, F f) {
  std::array<std::int64_t, max_rank> at{};
  const std::int64_t size = view.size();
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    f(static_cast<std::size_t>(i), offset);
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      offset += view.strides[a];
      if (++at[a] < view.shape[a]) break;
      offset -= at[a] * view.strides[a];
      at[a] = 0;
    }
  }
}

template <class T, class Integer>
T exactly(Integer v) {
  // 2^24 for float, 2^53 for double.
  constexpr std::int64_t largest = std::int64_t{1} << std::numeric_limits<T>::digits;
  if (static_cast<std::int64_t>(v) > largest || static_cast<std::int64_t>(v) < -largest)
    throw Error("the integer " + std::to_string(v) + " is too large for the reference; it holds integers up to " +
                std::to_string(largest) + " (evaluate in double for larger ones)");
  return static_cast<T>(v);
}

}  // namespace

template <class T>
Array<T> from_view(const TensorView& view) {
  Array<T> out;
  out.shape.assign(view.shape.begin(), view.shape.begin() + view.rank);
  out.data.resize(static_cast<std::size_t>(view.size()));
  for_each_offset(view, [&](std::size_t i, std::int64_t at) {
    switch (view.dtype) {
      case DType::f32: out.data[i] = static_cast<T>(view.as<const float>()[at]); break;
      case DType::f64: out.data[i] = static_cast<T>(view.as<const double>()[at]); break;
      case DType::i32: out.data[i] = exactly<T>(view.as<const std::int32_t>()[at]); break;
      case DType::i64: out.data[i] = exactly<T>(view.as<const std::int64_t>()[at]); break;
      case DType::boolean: out.data[i] = view.as<const std::uint8_t>()[at] != 0 ? T(1) : T(0); break;
    }
  });
  return out;
}

template <class T>
void to_view(const Array<T>& from, const TensorView& to) {
  const std::span<const std::int64_t> shape(to.shape.data(), static_cast<std::size_t>(to.rank));
  if (!std::equal(from.shape.begin(), from.shape.end(), shape.begin(), shape.end()))
    throw Error("a tensor " + shape_text(shape) + " cannot take a result " + shape_text(from.shape));
  for_each_offset(to, [&](std::size_t i, std::int64_t at) {
    const T v = from.data[i];
    switch (to.dtype) {
      case DType::f32: to.as<float>()[at] = static_cast<float>(v); break;
      case DType::f64: to.as<double>()[at] = static_cast<double>(v); break;
      case DType::i32: to.as<std::int32_t>()[at] = static_cast<std::int32_t>(v); break;
      case DType::i64: to.as<std::int64_t>()[at] = static_cast<std::int64_t>(v); break;
      case DType::boolean: to.as<std::uint8_t>()[at] = v != 0 ? 1 : 0; break;
    }
  });
}

template Array<float> from_view(const TensorView&);
template Array<double> from_view(const TensorView&);
template void to_view(const Array<float>&, const TensorView&);
template void to_view(const Array<double>&, const TensorView&);

}  // namespace treadle::reference

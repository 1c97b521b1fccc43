#include <treadle/io/error.hpp>
#include <treadle/io/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace treadle::io {

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::int64_t checked_size(std::span<const std::int64_t> shape, DType dtype) {
  const std::int64_t limit = std::numeric_limits<std::ptrdiff_t>::max() / static_cast<std::int64_t>(size_of(dtype));
  std::int64_t n = 1;
  for (const std::int64_t d : shape) {
    if (d < 0) throw Error("shape " + shape_text(shape) + " has a negative dim; dims count from 0");
    // A dim of 0 makes the tensor empty, however large the others are: their product must fit all the same.
    if (d > 0 && n > limit / d) throw Error("shape " + shape_text(shape) + " is larger than any memory");
    n *= std::max<std::int64_t>(d, 1);
  }
  return std::ranges::find(shape, 0) == shape.end() ? n : 0;
}

Tensor::Tensor(DType type, std::vector<std::int64_t> dims) : dtype(type), shape(std::move(dims)) {
  if (shape.size() > static_cast<std::size_t>(max_rank))
    throw Error("shape " + shape_text(shape) + " has rank " + std::to_string(shape.size()) + "; at most " +
                std::to_string(max_rank) + " is read");
  data.resize(static_cast<std::size_t>(checked_size(shape, dtype)) * size_of(dtype));
}

TensorView Tensor::view() {
  alignas(64) static std::byte nothing[1];
  return dense_view(data.empty() ? static_cast<void*>(nothing) : data.data(), dtype, shape);
}
TensorView Tensor::view() const { return const_cast<Tensor*>(this)->view(); }

namespace {

template <class From, class To>
To number(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // −min and 2^digits are exact in every float type.
    const From low = static_cast<From>(std::numeric_limits<To>::min());
    if (!(x >= low && x < -low))
      throw Error(std::to_string(x) + " does not fit an integer of the dtype that is asked for");
    return static_cast<To>(x);
  } else if constexpr (std::is_same_v<From, std::int64_t> && std::is_same_v<To, std::int32_t>) {
    if (x < std::numeric_limits<To>::min() || x > std::numeric_limits<To>::max())
      throw Error(std::to_string(x) + " does not fit i32");
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class F>
void with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::boolean: return f(bool{});
  }
}

}  // namespace

Tensor convert(const Tensor& from, DType to) {
  if (from.dtype == to) return from;
  Tensor result(to, from.shape);
  with_type(from.dtype, [&]<class From>(From) {
    with_type(
        to, [&]<class To>(To) { std::ranges::transform(from.as<From>(), result.as<To>().begin(), number<From, To>); });
  });
  return result;
}

}  // namespace treadle::io

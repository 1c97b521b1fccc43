#pragma once
// Tensors of xtensor in and out of a model, without a copy:
//
//   #include <treadle/treadle.hpp>
//   #include <treadle/xtensor.hpp>
//   xt::xtensor<float, 3> logits = treadle::run<float, 3>(model, {{"tokens", treadle::view(tokens)}}, "logits");
//
// Containers and strided views of them can be handed over; lazy expressions must be evaluated first (xt::eval). A
// header of its own: xtensor costs every file that includes it most of a second, and the library does not show it
// anywhere else.

#include <treadle/backends/bound_model.hpp>
#include <treadle/ops/xtensor_clang.hpp>

#include <array>
#include <concepts>
#include <string>
#include <type_traits>
#include <xtensor/xtensor.hpp>

namespace treadle {

namespace detail {
template <class T>
consteval DType dtype_of() {
  using V = std::remove_cv_t<T>;
  if constexpr (std::same_as<V, float>) {
    return f32;
  } else if constexpr (std::same_as<V, double>) {
    return f64;
  } else if constexpr (std::same_as<V, std::int32_t>) {
    return i32;
  } else if constexpr (std::same_as<V, std::int64_t>) {
    return i64;
  } else {
    static_assert(std::same_as<V, bool> || std::same_as<V, std::uint8_t>,
                  "tensors hold float, double, std::int32_t, std::int64_t, or bool");
    return boolean;
  }
}
template <class X>
concept strided_memory = requires(X& x) {
  x.data();
  x.shape();
  x.strides();
  x.data_offset();
};
}  // namespace detail

/// The memory of a container or strided view of xtensor; it must outlive the view. Inputs are only read, so a constant
/// one may be given. Throws Error if the rank is above `max_rank`.
template <class X>
  requires detail::strided_memory<X>
TensorView view(X& x) {
  using T = std::remove_reference_t<decltype(*x.data())>;
  TensorView v;
  if (x.dimension() > static_cast<std::size_t>(max_rank))
    throw Error("an xtensor of rank " + std::to_string(x.dimension()) + ": at most " + std::to_string(max_rank) +
                " dims are possible");
  v.dtype = detail::dtype_of<T>();
  v.rank = static_cast<std::int32_t>(x.dimension());
  v.data = const_cast<std::remove_cv_t<T>*>(x.data() + x.data_offset());
  for (std::size_t i = 0; i < x.dimension(); ++i) {
    v.shape[i] = static_cast<std::int64_t>(x.shape()[i]);
    v.strides[i] = static_cast<std::int64_t>(x.strides()[i]);
  }
  return v;
}

/// Runs once and gives one output as a new tensor of rank N. Throws Error as `BoundModel::run` does, and if the output
/// has another rank or dtype.
template <class T, std::size_t N>
xt::xtensor<T, N> run(BoundModel& model, std::initializer_list<NamedTensor> inputs, std::string_view output) {
  const TensorView spec = model.output_spec(output);
  if (spec.rank != static_cast<std::int32_t>(N) || spec.dtype != detail::dtype_of<T>())
    throw Error("output '" + std::string(output) + "' is " + std::string(name(spec.dtype)) + " of rank " +
                std::to_string(spec.rank) + "; asked for was " + std::string(name(detail::dtype_of<T>())) +
                " of rank " + std::to_string(N));
  std::array<std::size_t, N> shape{};
  for (std::size_t i = 0; i < N; ++i) shape[i] = static_cast<std::size_t>(spec.shape[i]);
  auto result = xt::xtensor<T, N>::from_shape(shape);
  model.run(inputs, {{output, view(result)}});
  return result;
}

}  // namespace treadle

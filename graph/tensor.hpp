#pragma once
// A strided view of memory that somebody else owns: how tensors cross every border of the library.

#include <treadle/graph/dtype.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace treadle {

inline constexpr int max_rank = 6;

/// Shape and strides are in elements; a stride of 0 broadcasts. `data == nullptr` means "not given".
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int32_t rank = 0;
  std::array<std::int64_t, max_rank> shape{};
  std::array<std::int64_t, max_rank> strides{};

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return data != nullptr; }
  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  constexpr bool contiguous() const {
    std::int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (shape[i] != 1 && strides[i] != expected) return false;
      expected *= shape[i];
    }
    return true;
  }
};

/// Row-major view.
constexpr TensorView dense_view(void* data, DType dtype, std::span<const std::int64_t> shape) {
  TensorView v;
  v.data = data;
  v.dtype = dtype;
  v.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t stride = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    v.shape[i] = shape[i];
    v.strides[i] = stride;
    stride *= shape[i];
  }
  return v;
}

}  // namespace treadle

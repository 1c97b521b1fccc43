#pragma once
// A tensor that owns its memory: what files are read into.

#include <treadle/graph/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace treadle::io {

/// Memory at addresses divisible by 64: a cache line, and the widest SIMD register.
template <class T>
struct Aligned {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  Aligned() = default;
  template <class U>
  constexpr Aligned(const Aligned<U>&) noexcept {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  void deallocate(T* p, std::size_t n) noexcept { ::operator delete(p, n * sizeof(T), alignment); }
  template <class U>
  constexpr bool operator==(const Aligned<U>&) const noexcept {
    return true;
  }
};

/// Dense and row-major. An empty shape is one number; a dim of 0 is no number.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte, Aligned<std::byte>> data;

  Tensor() = default;
  /// Zeros. Throws Error where the rank exceeds max_rank, a dim is negative or the size is beyond the address space.
  Tensor(DType type, std::vector<std::int64_t> dims);

  std::int64_t size() const { return static_cast<std::int64_t>(data.size() / size_of(dtype)); }
  /// Strided view of this tensor's memory; it is never "not given" (graph/tensor.hpp), even of an empty tensor.
  TensorView view();
  TensorView view() const;  ///< not to be written through
  /// The elements; T must have the size of the dtype (bool, std::uint8_t or std::byte for booleans).
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
};

/// Element count of a shape. Throws Error where a dim is negative or the bytes are beyond the address space.
std::int64_t checked_size(std::span<const std::int64_t> shape, DType dtype);

/// The same numbers in another dtype: floats round to nearest and lose their fraction on the way to integers, which
/// must hold the rest (Error otherwise); anything but 0 is true.
Tensor convert(const Tensor& from, DType to);
inline Tensor to_f32(const Tensor& from) { return convert(from, DType::f32); }
inline Tensor to_f64(const Tensor& from) { return convert(from, DType::f64); }

/// "[1, 12, 512, 32]".
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace treadle::io

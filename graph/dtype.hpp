#pragma once
// Element types of tensors.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace treadle {

enum class DType : std::uint8_t { f32, f64, i32, i64, boolean };

constexpr std::string_view name(DType t) {
  constexpr std::string_view names[] = {"f32", "f64", "i32", "i64", "bool"};
  return names[static_cast<int>(t)];
}

constexpr std::size_t size_of(DType t) {
  constexpr std::size_t sizes[] = {4, 8, 4, 8, 1};
  return sizes[static_cast<int>(t)];
}

inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType boolean = DType::boolean;

}  // namespace treadle

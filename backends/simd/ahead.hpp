#pragma once
// Memory that is needed soon, asked for a few rows at a time between the products, so that it travels beside them.

#include <cstdint>

namespace treadle::simd {

struct Ahead {
  const float* row = nullptr;
  std::int64_t stride = 0, rows = 0, columns = 0;

  /// Asks for the next n rows, into the second cache: the first one is full of what is being worked on.
  void take(std::int64_t n) {
    constexpr std::int64_t line = 16;
    for (; n > 0 && rows > 0; --n, --rows, row += stride)
      for (std::int64_t c = 0; c < columns; c += line) __builtin_prefetch(row + c, 0, 2);
  }
};

}  // namespace treadle::simd

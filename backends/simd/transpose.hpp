#pragma once
// Rows into lanes and back, in registers: squares of as many rows as a vector has lanes.

#include <treadle/backends/simd/facade.hpp>

#include <algorithm>
#include <utility>

namespace treadle::simd {

/// Swaps the off-diagonal halves of every 2h × 2h square (Eklundh 1972): lane j of `low` and `high`, rows h apart.
template <int H, class Isa, int... J>
[[gnu::always_inline]] inline void swap_halves(Vec<Isa>& low, Vec<Isa>& high, std::integer_sequence<int, J...>) {
  constexpr int width = Vec<Isa>::width;
  const auto a = low.r, b = high.r;
  low.r = __builtin_shufflevector(a, b, ((J & H) != 0 ? width + J - H : J)...);
  high.r = __builtin_shufflevector(a, b, ((J & H) != 0 ? width + J : J + H)...);
}

template <int H, class Isa>
[[gnu::always_inline]] inline void transpose_square(Vec<Isa> (&row)[Vec<Isa>::width]) {
  constexpr int width = Vec<Isa>::width;
  for (int i = 0; i < width; ++i)
    if ((i & H) == 0) swap_halves<H>(row[i], row[i + H], std::make_integer_sequence<int, width>{});
  if constexpr (H > 1) transpose_square<H / 2>(row);
}

/// The square of rows p, p + stride, … as columns. Loads of four put what lies furthest apart in its place, so that two
/// of the log₂ width steps are left.
template <class Isa>
[[gnu::always_inline]] inline void load_transposed(const float* p, std::int64_t stride,
                                                   Vec<Isa> (&column)[Vec<Isa>::width]) {
  for (int c = 0; c < Vec<Isa>::width; c += 4)
    for (int i = 0; i < 4; ++i) column[c + i] = Vec<Isa>::load_fours(p + i * stride + c, 4 * stride);
  transpose_square<2>(column);
}

/// Sums over the lanes of `width` vectors, as one vector: the sum of row i in lane i.
template <int H, class Isa>
[[gnu::always_inline]] inline void add_across(Vec<Isa> (&row)[Vec<Isa>::width]) {
  for (int i = 0; i < H; ++i) {
    swap_halves<H>(row[i], row[i + H], std::make_integer_sequence<int, Vec<Isa>::width>{});
    row[i] += row[i + H];
  }
  if constexpr (H > 1) add_across<H / 2>(row);
}

/// out[c·ld + r] = factor · in[r·stride + c] for r < rows, 0 for the other lanes up to ld: rows become lanes.
template <class Isa>
void transpose_in(const float* in, std::int64_t stride, std::int64_t rows, std::int64_t columns, float* out,
                  std::int64_t ld, float factor) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  for (std::int64_t r = 0; r < ld; r += width) {
    for (std::int64_t c = 0; c < columns; c += width) {
      const int n = static_cast<int>(std::min<std::int64_t>(width, columns - c));
      V square[width];
      if (n == width && r + width <= rows) {
        load_transposed(in + r * stride + c, stride, square);
        for (int i = 0; i < width; ++i) (V(factor) * square[i]).store(out + (c + i) * ld + r);
        continue;
      }
      for (int i = 0; i < width; ++i)
        square[i] = r + i >= rows ? V(0.0f) : V(factor) * V::load(in + (r + i) * stride + c, n);
      transpose_square<width / 2>(square);
      for (int i = 0; i < width; ++i)
        if (i < n) square[i].store(out + (c + i) * ld + r);
    }
  }
}

/// out[r·stride + c] = in[c·ld + r] for r < rows: lanes become rows.
template <class Isa>
void transpose_out(const float* in, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* out,
                   std::int64_t stride) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  for (std::int64_t r = 0; r < rows; r += width) {
    for (std::int64_t c = 0; c < columns; c += width) {
      const int n = static_cast<int>(std::min<std::int64_t>(width, columns - c));
      V square[width];
      if (n == width && r + width <= rows) {
        load_transposed(in + c * ld + r, ld, square);
        for (int i = 0; i < width; ++i) square[i].store(out + (r + i) * stride + c);
        continue;
      }
      for (int i = 0; i < width; ++i) square[i] = i < n ? V::load(in + (c + i) * ld + r) : V(0.0f);
      transpose_square<width / 2>(square);
      for (int i = 0; i < width; ++i)
        if (r + i < rows) square[i].store(out + (r + i) * stride + c, n);
    }
  }
}

}  // namespace treadle::simd

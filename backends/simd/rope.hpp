#pragma once
// Rotary positions. Both layouts are x·cos + partner·sin with the sign in the table: the partner of a channel is half
// the rotary channels away, or its neighbour.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/elementwise.hpp>

namespace treadle::simd {

/// Lane 2i and lane 2i + 1 change places.
template <class Isa>
[[gnu::always_inline]] inline Vec<Isa> swap_pairs(Vec<Isa> x) {
  return [&]<int... J>(std::integer_sequence<int, J...>) __attribute__((always_inline)) {
    return Vec<Isa>(__builtin_shufflevector(x.r, x.r, (J ^ 1)...));
  }(std::make_integer_sequence<int, Vec<Isa>::width>{});
}

template <class Isa>
kernel::Work plan_rope(const kernel::Rope& a) {
  const auto& s = a.out.shape;
  return {Pieces(s[0] * s[1] * s[2], s[3]).count(), 0};
}

/// out = x·cos + partner·sin over n channels; `partner(i)` gives the lanes of the other channel of each pair.
template <class Isa, class Partner>
void turn(const float* x, const float* cos, const float* sin, float* out, std::int64_t n, Partner partner) {
  using V = Vec<Isa>;
  for (std::int64_t i = 0; i < n; i += V::width) {
    const int left = static_cast<int>(std::min<std::int64_t>(V::width, n - i));
    if (left == V::width) {
      fma(V::load(x + i), V::load(cos + i), partner(i, left) * V::load(sin + i)).store(out + i);
    } else {
      fma(V::load(x + i, left), V::load(cos + i, left), partner(i, left) * V::load(sin + i, left)).store(out + i, left);
    }
  }
}

template <class Isa>
void run_rope(const kernel::Rope& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const auto& s = a.out.shape;
  const std::int64_t rotary = a.rotary_dim, half = rotary / 2, dim = s[3];
  const Pieces pieces(s[0] * s[1] * s[2], dim);
  const auto load = [](const float* p, int n) { return n == V::width ? V::load(p) : V::load(p, n); };
  pieces.each(first, last, [&](std::int64_t r, std::int64_t column, std::int64_t) {
    if (column != 0) return;  // a row is turned whole
    const std::int64_t n = r % s[2], h = r / s[2] % s[1], b = r / s[2] / s[1];
    const float* x = a.x.as<const float>() + b * a.x.strides[0] + h * a.x.strides[1] + n * a.x.strides[2];
    const float* cos = a.table.as<const float>() + b * a.table.strides[0] + n * a.table.strides[1];
    const float* sin = cos + rotary;
    float* out = a.out.as<float>() + b * a.out.strides[0] + h * a.out.strides[1] + n * a.out.strides[2];
    if (a.interleaved) {
      turn<Isa>(x, cos, sin, out, rotary, [&](std::int64_t i, int left) { return swap_pairs<Isa>(load(x + i, left)); });
    } else {
      turn<Isa>(x, cos, sin, out, half, [&](std::int64_t i, int left) { return load(x + half + i, left); });
      turn<Isa>(x + half, cos + half, sin + half, out + half, half,
                [&](std::int64_t i, int left) { return load(x + i, left); });
    }
    std::copy(x + rotary, x + dim, out + rotary);
  });
}

}  // namespace treadle::simd

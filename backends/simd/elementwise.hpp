#pragma once
// One number in, one out; and two broadcast tensors in, one out.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>

namespace treadle::simd {

/// [rows, width] cut into pieces of about `columns` numbers: many short rows, or a part of a long one.
struct Pieces {
  static constexpr std::int64_t columns = 4096;
  std::int64_t rows, width, rows_each, parts;

  Pieces(std::int64_t r, std::int64_t w)
      : rows(r),
        width(w),
        rows_each(w == 0 ? 1 : std::max<std::int64_t>(1, columns / w)),
        parts(ceil_div(w, columns)) {}
  std::size_t count() const { return static_cast<std::size_t>(ceil_div(rows, rows_each) * parts); }

  /// f(row, first column, number of columns)
  template <class F>
  void each(std::size_t first, std::size_t last, F f) const {
    for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item) {
      const std::int64_t column = item % parts * columns, row = item / parts * rows_each;
      for (std::int64_t r = row; r < std::min(row + rows_each, rows); ++r)
        f(r, column, std::min(columns, width - column));
    }
  }
};

template <class Isa>
kernel::Work plan_elementwise(const kernel::Elementwise& a) {
  return {Pieces(a.x.shape[0], a.x.shape[1]).count(), 0};
}

template <class Isa>
void run_elementwise(const kernel::Elementwise& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const Pieces pieces(a.x.shape[0], a.x.shape[1]);
  with_unary<Isa>(a.op, a.factor, [&](auto f) {
    pieces.each(first, last, [&](std::int64_t r, std::int64_t column, std::int64_t n) {
      const float* x = a.x.as<const float>() + r * a.x.strides[0] + column;
      float* out = a.out.as<float>() + r * a.out.strides[0] + column;
      std::int64_t i = 0;
      for (; i + V::width <= n; i += V::width) f(V::load(x + i)).store(out + i);
      if (i < n) f(V::load(x + i, static_cast<int>(n - i))).store(out + i, static_cast<int>(n - i));
    });
  });
}

template <class Isa>
kernel::Work plan_combine(const kernel::Combine& a) {
  const auto& s = a.out.shape;
  return {Pieces(s[0] * s[1] * s[2], s[3]).count(), 0};
}

/// A row of an operand: lanes from memory, one number for all of them, or gathered.
template <class Isa>
Vec<Isa> load_strided(const float* p, std::int64_t stride, int n) {
  using V = Vec<Isa>;
  if (stride == 1) return n == V::width ? V::load(p) : V::load(p, n);
  if (stride == 0) return V(*p);
  float lanes[V::width] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i * stride];
  return V::load(lanes);
}

template <class Isa>
void run_combine(const kernel::Combine& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const auto& s = a.out.shape;
  const auto at = [&](const TensorView& t, std::int64_t r) {
    const std::int64_t i2 = r % s[2], i1 = r / s[2] % s[1], i0 = r / s[2] / s[1];
    return t.as<float>() + i0 * t.strides[0] + i1 * t.strides[1] + i2 * t.strides[2];
  };
  Pieces(s[0] * s[1] * s[2], s[3]).each(first, last, [&](std::int64_t r, std::int64_t column, std::int64_t n) {
    const std::int64_t sx = a.a.strides[3], sy = a.b.strides[3], so = a.out.strides[3];
    const float* x = at(a.a, r) + column * sx;
    const float* y = at(a.b, r) + column * sy;
    float* out = at(a.out, r) + column * so;
    for (std::int64_t i = 0; i < n; i += V::width) {
      const int left = static_cast<int>(std::min<std::int64_t>(V::width, n - i));
      const V v = load_strided<Isa>(x + i * sx, sx, left), w = load_strided<Isa>(y + i * sy, sy, left);
      const V z = a.op == kernel::Binary::add ? v + w : v * w;
      if (so == 1) {
        if (left == V::width)
          z.store(out + i);
        else
          z.store(out + i, left);
      } else {
        float lanes[V::width];
        z.store(lanes);
        for (int l = 0; l < left; ++l) out[(i + l) * so] = lanes[l];
      }
    }
  });
}

}  // namespace treadle::simd

#pragma once
// Batched products of strided operands. A panel of b is copied into the workspace, k in pieces so that it stays small;
// `out` holds the partial sums between pieces, which leaves each element the same chain of fma in order of k.

#include <treadle/backends/simd/linear.hpp>

namespace treadle::simd {

struct MatMulTiling {
  static constexpr std::int64_t depth = 512, rows = 192;
  std::int64_t row_blocks, panels, batches;

  MatMulTiling(const kernel::MatMul& a, std::int64_t lanes)
      : row_blocks(ceil_div(a.out.shape[2], rows)),
        panels(ceil_div(a.out.shape[3], lanes)),
        batches(a.out.shape[0] * a.out.shape[1]) {}
};

template <class Isa>
kernel::Work plan_matmul(const kernel::MatMul& a) {
  const MatMulTiling t(a, Shape<Isa>::lanes);
  Carver c(nullptr);
  c.floats(MatMulTiling::depth * Shape<Isa>::lanes);
  c.floats(MatMulTiling::depth * Shape<Isa>::rows);
  return {static_cast<std::size_t>(t.batches * t.row_blocks * t.panels), c.used()};
}

template <class Isa, int Vectors>
void matmul_block(const kernel::MatMul& m, const float* a, const float* b, float* out, std::int64_t rows,
                  std::int64_t columns, float* panel, float* strip) {
  using V = Vec<Isa>;
  constexpr std::int64_t ld = Vectors * V::width;
  const std::int64_t k_len = m.a.shape[3], sr = m.a.strides[2], sk = m.a.strides[3], so = m.out.strides[2];
  for (std::int64_t k0 = 0; k0 == 0 || k0 < k_len; k0 += MatMulTiling::depth) {
    const std::int64_t depth = std::min(MatMulTiling::depth, k_len - k0);
    const bool begins = k0 == 0, ends = k0 + depth >= k_len;
    pack_panel<Isa>(b + k0 * m.b.strides[2], m.b.strides[2], m.b.strides[3], depth, columns, 0, ld, panel);
    for_row_blocks<Shape<Isa>::rows>(rows, [&](auto count, std::int64_t first) {
      Accumulators<Isa, count, Vectors> acc;
      const auto place = [&](int r, int v) { return out + (first + r) * so + v * V::width; };
      const auto lanes = [&](int v) {
        return static_cast<int>(std::clamp<std::int64_t>(columns - v * V::width, 0, V::width));
      };
      if (begins)
        acc.clear();
      else
        acc.each([&](auto r, auto v, V& x) { x = V::load(place(r, v), lanes(v)); });
      const float* x = a + first * sr + k0 * sk;
      if (sk == 1)
        multiply_rows(acc, x, sr, panel, ld, depth);
      else if (sr == 1)
        multiply_columns(acc, x, sk, panel, ld, depth);
      else {
        for (int r = 0; r < count; ++r)
          for (std::int64_t k = 0; k < depth; ++k) strip[r * depth + k] = x[r * sr + k * sk];
        multiply_rows(acc, strip, depth, panel, ld, depth);
      }
      acc.each([&](auto r, auto v, V& y) { (ends ? y * V(m.alpha) : y).store(place(r, v), lanes(v)); });
    });
  }
}

template <class Isa>
void run_matmul(const kernel::MatMul& m, std::size_t begin, std::size_t end, void* workspace) {
  const MatMulTiling t(m, Shape<Isa>::lanes);
  Carver c(workspace);
  float* panel = c.floats(MatMulTiling::depth * Shape<Isa>::lanes);
  float* strip = c.floats(MatMulTiling::depth * Shape<Isa>::rows);
  for (auto item = static_cast<std::int64_t>(begin); item < static_cast<std::int64_t>(end); ++item) {
    const std::int64_t column = item % t.panels * Shape<Isa>::lanes,
                       row = item / t.panels % t.row_blocks * MatMulTiling::rows;
    const std::int64_t batch = item / t.panels / t.row_blocks, i0 = batch / m.out.shape[1], i1 = batch % m.out.shape[1];
    const std::int64_t columns = std::min<std::int64_t>(Shape<Isa>::lanes, m.out.shape[3] - column);
    const std::int64_t rows = std::min(MatMulTiling::rows, m.out.shape[2] - row);
    const auto at = [&](const TensorView& x) { return x.as<float>() + i0 * x.strides[0] + i1 * x.strides[1]; };
    with_vectors<Isa>(columns, [&](auto vectors) {
      matmul_block<Isa, vectors>(m, at(m.a) + row * m.a.strides[2], at(m.b) + column * m.b.strides[3],
                                 at(m.out) + row * m.out.strides[2] + column, rows, columns, panel, strip);
    });
  }
}

}  // namespace treadle::simd

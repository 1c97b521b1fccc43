#pragma once
// Two products of the same rows, one of them activated, multiplied with each other. A work item takes the same columns
// of both weights, so that the two results of a block of rows are in registers and first-level cache when they meet.

#include <treadle/backends/simd/linear.hpp>

namespace treadle::simd {

template <class Isa>
struct GatedEpilogue {
  const float *gate_bias, *up_bias;  // of the panel, or null
  float* out;
  std::int64_t out_stride, columns;  // of the panel that exist
};

/// out = op(gate + gate_bias) · (up + up_bias)
template <class Isa, kernel::Unary op>
void finish_gated_rows(const GatedEpilogue<Isa>& e, const float* gate, const float* up, std::int64_t ld, int rows) {
  using V = Vec<Isa>;
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < e.columns; c += V::width) {
      const int n = static_cast<int>(std::min<std::int64_t>(V::width, e.columns - c));
      const bool whole = n == V::width;
      V x = V::load(gate + r * ld + c), y = V::load(up + r * ld + c);
      if (e.gate_bias != nullptr) x += whole ? V::load(e.gate_bias + c) : V::load(e.gate_bias + c, n);
      if (e.up_bias != nullptr) y += whole ? V::load(e.up_bias + c) : V::load(e.up_bias + c, n);
      const V z = apply<op>(x, V(1.0f)) * y;
      float* to = e.out + r * e.out_stride + c;
      if (whole)
        z.store(to);
      else
        z.store(to, n);
    }
  }
}

template <class Isa>
auto finish_gated_rows_for(kernel::Unary op) {
  using U = kernel::Unary;
  switch (op) {
    case U::relu: return finish_gated_rows<Isa, U::relu>;
    case U::gelu: return finish_gated_rows<Isa, U::gelu>;
    case U::gelu_tanh: return finish_gated_rows<Isa, U::gelu_tanh>;
    case U::silu: return finish_gated_rows<Isa, U::silu>;
    case U::exp: return finish_gated_rows<Isa, U::exp>;
    case U::tanh: return finish_gated_rows<Isa, U::tanh>;
    case U::erf: return finish_gated_rows<Isa, U::erf>;
    case U::elu_plus_one: return finish_gated_rows<Isa, U::elu_plus_one>;
    case U::sigmoid: return finish_gated_rows<Isa, U::sigmoid>;
    case U::log: return finish_gated_rows<Isa, U::log>;
    case U::softplus: return finish_gated_rows<Isa, U::softplus>;
    case U::elu: return finish_gated_rows<Isa, U::elu>;  // α = 1
    case U::squared_relu: return finish_gated_rows<Isa, U::squared_relu>;
    case U::quick_gelu: return finish_gated_rows<Isa, U::quick_gelu>;
    default: return finish_gated_rows<Isa, U::identity>;
  }
}

struct GatedTiling {
  static constexpr std::int64_t row_block =
      192;  // as of linear: with two panels the rows still fit a 2 MB cache nearly
  std::int64_t row_blocks;
  explicit GatedTiling(const kernel::GatedLinear& a) : row_blocks(ceil_div(a.out.shape[0], row_block)) {}
};

template <class Isa>
kernel::Work plan_gated_linear(const kernel::GatedLinear& a) {
  return {static_cast<std::size_t>(ceil_div(a.up.n, Shape<Isa>::lanes) * GatedTiling(a).row_blocks), 0};
}

template <class Isa>
void run_gated_linear(const kernel::GatedLinear& a, std::size_t begin, std::size_t end, void*) {
  using V = Vec<Isa>;
  const GatedTiling t(a);
  const std::int64_t rows = a.out.shape[0], k = a.up.k, n = a.up.n;
  const auto finish = finish_gated_rows_for<Isa>(a.activation);
  for (auto item = static_cast<std::int64_t>(begin); item < static_cast<std::int64_t>(end); ++item) {
    const std::int64_t column = item / t.row_blocks * Shape<Isa>::lanes,
                       row = item % t.row_blocks * GatedTiling::row_block;
    const std::int64_t lanes = panel_lanes<Isa>(n, column), count = std::min(GatedTiling::row_block, rows - row);
    const float* x = a.a.as<const float>() + row * a.a.strides[0];
    float* const out = a.out.as<float>() + row * a.out.strides[0] + column;
    GatedEpilogue<Isa> e{a.gate_bias ? a.gate_bias.as<const float>() + column : nullptr,
                         a.up_bias ? a.up_bias.as<const float>() + column : nullptr, out, a.out.strides[0],
                         std::min<std::int64_t>(lanes, n - column)};
    with_vectors<Isa>(lanes, [&](auto vectors) {
      constexpr std::int64_t ld = vectors * V::width;
      for_row_blocks<Shape<Isa>::rows>(count, [&](auto block_rows, std::int64_t first) {
        alignas(64) float blocks[2][block_rows * ld];
        const float* panels[2] = {a.gate.data + column * k, a.up.data + column * k};
        for (int which = 0; which < 2; ++which) {
          Accumulators<Isa, block_rows, vectors> acc;
          acc.clear();
          multiply_rows(acc, x + first * a.a.strides[0], a.a.strides[0], panels[which], ld, k);
          float* block = blocks[which];
          acc.each([&](auto r, auto v, V& y)
                       __attribute__((always_inline)) { y.store(block + r * ld + v * V::width); });
        }
        e.out = out + first * e.out_stride;
        finish(e, blocks[0], blocks[1], ld, block_rows);
      });
    });
  }
}

}  // namespace treadle::simd

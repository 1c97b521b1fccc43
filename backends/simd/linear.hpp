#pragma once
// Rows by packed weights. The weights lie in panels of as many columns as the block has lanes, [panel][k][lane], so
// that the inner loop reads them in order; a panel stays in cache while the rows pass over it. k is never divided.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>

namespace treadle::simd {

/// Columns of the panel that starts at column `first`, rounded to whole vectors.
template <class Isa>
std::int64_t panel_lanes(std::int64_t n, std::int64_t first) {
  return std::min<std::int64_t>(Shape<Isa>::lanes, round_up(n - first, Vec<Isa>::width));
}

template <class Isa>
std::size_t packed_bytes(std::int64_t k, std::int64_t n) {
  return static_cast<std::size_t>(k * round_up(n, Vec<Isa>::width)) * sizeof(float);
}

/// One panel: columns [first, first + lanes) of w, rows [0, k); columns past n are 0.
template <class Isa>
void pack_panel(const float* w, std::int64_t row_stride, std::int64_t column_stride, std::int64_t k, std::int64_t n,
                std::int64_t first, std::int64_t lanes, float* out) {
  const std::int64_t filled = std::min(lanes, n - first);
  w += first * column_stride;
  if (row_stride == 1 && column_stride != 1) {  // a transposed view: read along its rows
    for (std::int64_t c = 0; c < lanes; ++c)
      for (std::int64_t i = 0; i < k; ++i) out[i * lanes + c] = c < filled ? w[i + c * column_stride] : 0.0f;
    return;
  }
  for (std::int64_t i = 0; i < k; ++i)
    for (std::int64_t c = 0; c < lanes; ++c)
      out[i * lanes + c] = c < filled ? w[i * row_stride + c * column_stride] : 0.0f;
}

template <class Isa>
void pack(const TensorView& w, float* packed) {
  const std::int64_t k = w.shape[0], n = w.shape[1];
  for (std::int64_t first = 0; first < n; first += Shape<Isa>::lanes)
    pack_panel<Isa>(w.as<const float>(), w.strides[0], w.strides[1], k, n, first, panel_lanes<Isa>(n, first),
                    packed + first * k);
}

/// What happens to a finished block of rows: bias, activation, residual, store.
template <class Isa>
struct Epilogue {
  const float* bias;  // of the panel, or null
  const float* residual;
  std::int64_t residual_stride;
  float* out;
  std::int64_t out_stride, columns;  // of the panel that exist
};

template <class Isa, kernel::Unary op>
void finish_rows(const Epilogue<Isa>& e, const float* block, std::int64_t ld, int rows) {
  using V = Vec<Isa>;
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < e.columns; c += V::width) {
      const int n = static_cast<int>(std::min<std::int64_t>(V::width, e.columns - c));
      const bool whole = n == V::width;
      V x = V::load(block + r * ld + c);
      if (e.bias != nullptr) x += whole ? V::load(e.bias + c) : V::load(e.bias + c, n);
      x = apply<op>(x, V(1.0f));
      if (e.residual != nullptr) {
        const float* at = e.residual + r * e.residual_stride + c;
        x += whole ? V::load(at) : V::load(at, n);
      }
      float* to = e.out + r * e.out_stride + c;
      if (whole)
        x.store(to);
      else
        x.store(to, n);
    }
  }
}

/// By activation: the product itself is compiled once.
template <class Isa>
auto finish_rows_for(kernel::Unary op) {
  using U = kernel::Unary;
  switch (op) {
    case U::relu: return finish_rows<Isa, U::relu>;
    case U::gelu: return finish_rows<Isa, U::gelu>;
    case U::gelu_tanh: return finish_rows<Isa, U::gelu_tanh>;
    case U::silu: return finish_rows<Isa, U::silu>;
    case U::exp: return finish_rows<Isa, U::exp>;
    case U::tanh: return finish_rows<Isa, U::tanh>;
    case U::erf: return finish_rows<Isa, U::erf>;
    case U::elu_plus_one: return finish_rows<Isa, U::elu_plus_one>;
    case U::sigmoid: return finish_rows<Isa, U::sigmoid>;
    case U::log: return finish_rows<Isa, U::log>;
    case U::softplus: return finish_rows<Isa, U::softplus>;
    case U::elu: return finish_rows<Isa, U::elu>;  // α = 1
    case U::squared_relu: return finish_rows<Isa, U::squared_relu>;
    case U::quick_gelu: return finish_rows<Isa, U::quick_gelu>;
    default: return finish_rows<Isa, U::identity>;
  }
}

/// Rows by one panel; `e` starts at the first row, `finish` is finish_rows for the activation.
template <class Isa, class Finish>
void rows_by_panel(const float* x, std::int64_t stride, std::int64_t count, const float* panel, std::int64_t k,
                   std::int64_t lanes, Epilogue<Isa> e, Finish finish) {
  using V = Vec<Isa>;
  float* const out = e.out;
  const float* const residual = e.residual;
  with_vectors<Isa>(lanes, [&](auto vectors) {
    constexpr std::int64_t ld = vectors * V::width;
    for_row_blocks<Shape<Isa>::rows>(count, [&](auto block_rows, std::int64_t first) {
      alignas(64) float block[block_rows * ld];
      Accumulators<Isa, block_rows, vectors> acc;
      acc.clear();
      multiply_rows(acc, x + first * stride, stride, panel, ld, k);
      acc.each([&](auto r, auto v, V& y) __attribute__((always_inline)) { y.store(block + r * ld + v * V::width); });
      e.out = out + first * e.out_stride;
      e.residual = residual == nullptr ? nullptr : residual + first * e.residual_stride;
      finish(e, block, ld, block_rows);
    });
  });
}

template <class Isa>
struct LinearTiling {
  std::int64_t row_block, row_blocks, panels;

  explicit LinearTiling(const kernel::Linear& a) {
    const std::int64_t rows = a.out.shape[0];
    row_block =
        192;  // a multiple of every block's rows; with K = 3072 the rows and a panel still fit a 2 MB cache nearly
    row_blocks = ceil_div(rows, row_block);
    panels = rows == 0 ? 0 : ceil_div(a.w.n, Shape<Isa>::lanes);
  }
};

template <class Isa>
kernel::Work plan_linear(const kernel::Linear& a) {
  const LinearTiling<Isa> t(a);
  return {static_cast<std::size_t>(t.panels * t.row_blocks), 0};
}

template <class Isa>
void run_linear(const kernel::Linear& a, std::size_t begin, std::size_t end, void*) {
  const LinearTiling<Isa> t(a);
  const std::int64_t rows = a.out.shape[0], k = a.w.k, n = a.w.n;
  const auto finish = finish_rows_for<Isa>(a.activation);
  for (auto item = static_cast<std::int64_t>(begin); item < static_cast<std::int64_t>(end); ++item) {
    const std::int64_t column = item / t.row_blocks * Shape<Isa>::lanes, row = item % t.row_blocks * t.row_block;
    const std::int64_t lanes = panel_lanes<Isa>(n, column), count = std::min(t.row_block, rows - row);
    const float* panel = a.w.data + column * k;
    const float* x = a.a.as<const float>() + row * a.a.strides[0];
    const Epilogue<Isa> e{a.bias ? a.bias.as<const float>() + column : nullptr,
                          a.residual ? a.residual.as<const float>() + row * a.residual.strides[0] + column : nullptr,
                          a.residual.strides[0],
                          a.out.as<float>() + row * a.out.strides[0] + column,
                          a.out.strides[0],
                          std::min<std::int64_t>(lanes, n - column)};
    rows_by_panel<Isa>(x, a.a.strides[0], count, panel, k, lanes, e, finish);
  }
}

}  // namespace treadle::simd

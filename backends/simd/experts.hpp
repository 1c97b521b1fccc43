#pragma once
// Mixture of experts: products of rows that lie expert by expert, and the weighted sum of what the experts gave.
//
// A work item is a block of one expert's rows and a few panels of its weights. How many blocks there are is known only
// after routing, so `plan` counts the most there can be, and items past the last block have nothing to do.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/linear.hpp>

#include <atomic>

namespace treadle::simd {

template <class Isa>
struct ExpertTiling {
  static constexpr std::int64_t rows = 64, panels = 4, columns = panels * Shape<Isa>::lanes;
  std::int64_t row_blocks, column_blocks;

  explicit ExpertTiling(const kernel::ExpertLinear& a)
      : row_blocks(a.out.shape[0] / rows + std::min(a.experts, a.out.shape[0])),
        column_blocks(ceil_div(a.out.shape[1], columns)) {}
};

template <class Isa>
kernel::Work plan_expert_linear(const kernel::ExpertLinear& a) {
  const ExpertTiling<Isa> t(a);
  const std::size_t gathered = a.source ? static_cast<std::size_t>(t.rows * a.a.shape[1]) * sizeof(float) : 0;
  return {static_cast<std::size_t>(t.row_blocks * t.column_blocks), gathered};
}

template <class Isa>
void run_expert_linear(const kernel::ExpertLinear& a, std::size_t begin, std::size_t end, void* workspace) {
  const ExpertTiling<Isa> t(a);
  const std::int64_t k = a.a.shape[1], n = a.out.shape[1];
  const auto* starts = a.starts.as<const std::int32_t>();
  const auto finish = finish_rows_for<Isa>(a.activation);
  for (auto item = static_cast<std::int64_t>(begin); item < static_cast<std::int64_t>(end); ++item) {
    const std::int64_t column = item / t.row_blocks * t.columns;
    std::int64_t block = item % t.row_blocks, expert = 0;
    for (; expert < a.experts; ++expert) {
      const std::int64_t blocks = ceil_div(starts[expert + 1] - starts[expert], t.rows);
      if (block < blocks) break;
      block -= blocks;
    }
    if (expert == a.experts) continue;
    const std::int64_t row = starts[expert] + block * t.rows,
                       count = std::min<std::int64_t>(t.rows, starts[expert + 1] - row);
    const float* x = a.a.as<const float>();
    std::int64_t stride = a.a.strides[0];
    if (a.source) {
      auto* gathered = static_cast<float*>(workspace);
      const auto* source = a.source.as<const std::int32_t>() + row;
      for (std::int64_t r = 0; r < count; ++r) std::copy_n(x + source[r] * stride, k, gathered + r * k);
      x = gathered;
      stride = k;
    } else {
      x += row * stride;
    }
    if (column == 0 && a.computed != nullptr)
      std::atomic_ref<std::int64_t>(*a.computed).fetch_add(count, std::memory_order_relaxed);
    for (std::int64_t c = column; c < std::min(n, column + t.columns); c += Shape<Isa>::lanes) {
      const std::int64_t lanes = panel_lanes<Isa>(n, c);
      Epilogue<Isa> e{};
      e.out = a.out.as<float>() + row * a.out.strides[0] + c;
      e.out_stride = a.out.strides[0];
      e.columns = std::min<std::int64_t>(lanes, n - c);
      rows_by_panel<Isa>(x, stride, count, a.weights[expert].data + c * k, k, lanes, e, finish);
    }
  }
}

template <class Isa>
kernel::Work plan_mix_experts(const kernel::MixExperts& a) {
  return {Pieces(a.out.shape[0], a.out.shape[1]).count(), 0};
}

/// In order of the choices: each output is one chain of fma.
template <class Isa>
void run_mix_experts(const kernel::MixExperts& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const std::int64_t top_k = a.rows.shape[1];
  Pieces(a.out.shape[0], a.out.shape[1]).each(first, last, [&](std::int64_t t, std::int64_t column, std::int64_t n) {
    const auto* rows = a.rows.as<const std::int32_t>() + t * a.rows.strides[0];
    const float* weights = a.weights.as<const float>() + t * a.weights.strides[0];
    float* out = a.out.as<float>() + t * a.out.strides[0] + column;
    for (std::int64_t i = 0; i < n; i += V::width) {
      const int left = static_cast<int>(std::min<std::int64_t>(V::width, n - i));
      V sum(0.0f);
      for (std::int64_t j = 0; j < top_k; ++j) {
        const float* y = a.y.as<const float>() + rows[j] * a.y.strides[0] + column + i;
        sum = fma(V(weights[j]), left == V::width ? V::load(y) : V::load(y, left), sum);
      }
      if (left == V::width)
        sum.store(out + i);
      else
        sum.store(out + i, left);
    }
  });
}

}  // namespace treadle::simd

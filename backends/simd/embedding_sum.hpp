#pragma once
// Token embedding + positions (+ norm): one pass over each row instead of three.

#include <treadle/backends/simd/copy.hpp>
#include <treadle/backends/simd/norms.hpp>

namespace treadle::simd {

template <class Isa>
kernel::Work plan_embedding_sum(const kernel::EmbeddingSum& a) {
  return {a.out.shape[1] == 0 ? 0 : static_cast<std::size_t>(ceil_div(a.ids.shape[0], norm_rows)), 0};
}

template <class Isa>
void run_embedding_sum(const kernel::EmbeddingSum& a, std::size_t first, std::size_t last, void*) {
  const std::int64_t width = a.out.shape[1], period = a.rows.shape[0];
  for_norm_rows(a.ids.shape[0], first, last, [&](std::int64_t r) {
    float* out = row_of<float>(a.out, r);
    const float* rows = row_of(a.rows, r % period);
    if (const std::int64_t id = id_at(a.ids, r); id >= 0 && id < a.table.shape[0]) {
      const Vec<Isa> factor(a.factor);
      row_map<Isa>(row_of(a.table, id), nullptr, rows, out, width,
                   [&](auto v, auto, auto b) { return fma(v, factor, b); });
    } else {
      std::memcpy(out, rows, static_cast<std::size_t>(width) * sizeof(float));
      report_bad_id(a.bad);
    }
    if (a.norm == kernel::Norm::layer)
      layer_norm_row<Isa>(out, a.gamma.as<const float>(), a.beta.as<const float>(), out, width, a.eps);
    if (a.norm == kernel::Norm::rms) rms_norm_row<Isa>(out, a.gamma.as<const float>(), out, width, a.eps);
  });
}

}  // namespace treadle::simd

#pragma once
// Exponents of positive random features from the products with the projection: scale·y − scale²·|x|²/2, a row at a
// time.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/elementwise.hpp>
#include <treadle/backends/simd/norms.hpp>

namespace treadle::simd {

template <class Isa>
kernel::Work plan_random_features(const kernel::RandomFeatures& a) {
  return {static_cast<std::size_t>(ceil_div(a.out.shape[0], norm_rows)), 0};
}

template <class Isa>
void run_random_features(const kernel::RandomFeatures& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * norm_rows, a.out.shape[0]);
  const V scale(a.scale);
  for (std::int64_t r = static_cast<std::int64_t>(first) * norm_rows; r < end; ++r) {
    const float square =
        row_sum<Isa>(a.x.as<const float>() + r * a.x.strides[0], a.x.shape[1], [](V v) { return v * v; });
    const V shift(-0.5f * (a.scale * a.scale * square));
    row_map<Isa>(a.y.as<const float>() + r * a.y.strides[0], nullptr, nullptr, a.out.as<float>() + r * a.out.strides[0],
                 a.out.shape[1], [&](V v, V, V) { return fma(v, scale, shift); });
  }
}

}  // namespace treadle::simd

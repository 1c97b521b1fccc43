#pragma once
// Softmax over rows, with an optional boolean mask. The row is written twice: weights, then weights times 1 / sum.

#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/norms.hpp>

#include <limits>

namespace treadle::simd {

template <class Isa>
kernel::Work plan_softmax(const kernel::Softmax& a) {
  return {a.x.shape[1] == 0 ? 0 : static_cast<std::size_t>(ceil_div(a.x.shape[0], norm_rows)), 0};
}

template <class Isa>
void run_softmax(const kernel::Softmax& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::int64_t n = a.x.shape[1];
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * norm_rows, a.x.shape[0]);
  for (std::int64_t r = static_cast<std::int64_t>(first) * norm_rows; r < end; ++r) {
    const float* x = a.x.as<const float>() + r * a.x.strides[0];
    float* out = a.out.as<float>() + r * a.out.strides[0];
    const bool* keep = a.mask ? a.mask.as<const bool>() + r * a.mask.strides[0] : nullptr;
    V top(-infinity);
    for (std::int64_t i = 0; i < n; i += width) {
      const int left = static_cast<int>(std::min<std::int64_t>(width, n - i));
      std::uint64_t bits = (std::uint64_t{1} << left) - 1;
      if (keep != nullptr) {
        for (int l = 0; l < left; ++l)
          if (!keep[(i + l) * a.mask.strides[1]]) bits &= ~(std::uint64_t{1} << l);
      }
      const V v = select(mask_from_bits<Isa>(bits), V::load(x + i, left), V(-infinity));
      v.store(out + i, left);
      top = max(v, top);
    }
    const float largest = reduce_max(top);
    const V shift(largest == -infinity ? 0.0f : largest);
    V sum(0.0f);
    for (std::int64_t i = 0; i < n; i += width) {
      const int left = static_cast<int>(std::min<std::int64_t>(width, n - i));
      const V v = select(mask_from_bits<Isa>((std::uint64_t{1} << left) - 1), V::load(out + i, left), V(-infinity));
      const V p = simd::exp(v - shift);
      p.store(out + i, left);
      sum += p;
    }
    const float total = reduce_add(sum);
    const V factor(total == 0.0f ? 0.0f : 1.0f / total);
    row_map<Isa>(out, nullptr, nullptr, out, n, [&](V v, V, V) { return v * factor; });
  }
}

}  // namespace treadle::simd

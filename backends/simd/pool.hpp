#pragma once
// Pooling over a sequence: each lane adds or compares its column from the first position to the last.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>

namespace treadle::simd {

inline constexpr std::int64_t pool_columns = 64;  // of one work item

template <class Isa>
kernel::Work plan_pool(const kernel::Pool& a) {
  const auto& s = a.x.shape;
  return {static_cast<std::size_t>(s[0] * s[1] * ceil_div(s[3], pool_columns)), 0};
}

/// The larger of two; NaN if one is.
template <class Isa>
Vec<Isa> max_or_nan(Vec<Isa> a, Vec<Isa> b) {
  return select(a != a, a, max(a, b));
}

template <class Isa>
void run_pool(const kernel::Pool& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const std::int64_t parts = ceil_div(a.x.shape[3], pool_columns);
  for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item) {
    const std::int64_t begin = item % parts * pool_columns, end = std::min(begin + pool_columns, a.x.shape[3]),
                       h = item / parts % a.x.shape[1], b = item / parts / a.x.shape[1];
    const float* x = a.x.as<const float>() + b * a.x.strides[0] + h * a.x.strides[1];
    float* out = a.out.as<float>() + b * a.out.strides[0] + h * a.out.strides[1];
    std::int64_t count = a.x.shape[2];
    if (a.lengths) {
      const std::int32_t given =
          a.lengths.as<const std::int32_t>()[b * a.lengths.strides[0] + h * a.lengths.strides[1]];
      count = std::clamp<std::int64_t>(given, 0, count);
    }
    for (std::int64_t c = begin; c < end; c += V::width) {
      const int lanes = static_cast<int>(std::min<std::int64_t>(V::width, end - c));
      const auto row = [&](std::int64_t i) {
        const float* at = x + i * a.x.strides[2] + c;
        return lanes == V::width ? V::load(at) : V::load(at, lanes);
      };
      V value = count > 0 ? row(0) : V(0.0f);
      if (a.how == kernel::Pooling::max) {
        for (std::int64_t i = 1; i < count; ++i) value = max_or_nan(value, row(i));
      } else {
        for (std::int64_t i = 1; i < count; ++i) value += row(i);
        if (count > 0) value = value / V(static_cast<float>(count));
      }
      value.store(out + c, lanes);
    }
  }
}

}  // namespace treadle::simd

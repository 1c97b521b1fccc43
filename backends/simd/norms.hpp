#pragma once
// Row-wise normalisation. Rows are read two or three times, from cache; sums keep four vectors and one order.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>

#include <cmath>

namespace treadle::simd {

inline constexpr std::int64_t norm_rows = 8;  // rows of one work item

/// Σ f(x[i]) with four running vectors; f gets (vector, lanes that exist).
template <class Isa, class F>
float row_sum(const float* x, std::int64_t n, F f) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  V sum[4] = {V(0.0f), V(0.0f), V(0.0f), V(0.0f)};
  std::int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width)
    for (int u = 0; u < 4; ++u) sum[u] += f(V::load(x + i + u * width));
  for (int u = 0; i + width <= n; i += width, ++u) sum[u] += f(V::load(x + i));
  V rest = (sum[0] + sum[2]) + (sum[1] + sum[3]);
  if (i < n) {
    const int left = static_cast<int>(n - i);
    rest += select(mask_from_bits<Isa>((std::uint64_t{1} << left) - 1), f(V::load(x + i, left)), V(0.0f));
  }
  return reduce_add(rest);
}

/// out[i] = f(x[i], i-th lanes of g and b); absent g and b count as 1 and 0.
template <class Isa, class F>
void row_map(const float* x, const float* g, const float* b, float* out, std::int64_t n, F f) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  for (std::int64_t i = 0; i < n; i += width) {
    const int left = static_cast<int>(std::min<std::int64_t>(width, n - i));
    if (left == width) {
      f(V::load(x + i), g != nullptr ? V::load(g + i) : V(1.0f), b != nullptr ? V::load(b + i) : V(0.0f))
          .store(out + i);
    } else {
      f(V::load(x + i, left), g != nullptr ? V::load(g + i, left) : V(1.0f),
        b != nullptr ? V::load(b + i, left) : V(0.0f))
          .store(out + i, left);
    }
  }
}

template <class Isa, class Arguments>
kernel::Work plan_norm(const Arguments& a) {
  return {a.x.shape[1] == 0 ? 0 : static_cast<std::size_t>(ceil_div(a.x.shape[0], norm_rows)), 0};
}

template <class Isa>
void run_layer_norm(const kernel::LayerNorm& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const std::int64_t n = a.x.shape[1];
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * norm_rows, a.x.shape[0]);
  const float* gamma = a.gamma.as<const float>();
  const float* beta = a.beta.as<const float>();
  for (std::int64_t r = static_cast<std::int64_t>(first) * norm_rows; r < end; ++r) {
    const float* x = a.x.as<const float>() + r * a.x.strides[0];
    // Relative to the first element, so that a large mean costs no digits; then a second pass around the mean.
    const V origin(x[0]);
    const float offset = row_sum<Isa>(x, n, [&](V v) { return v - origin; }) / static_cast<float>(n);
    const V mean(offset);
    const float variance = row_sum<Isa>(x, n,
                                        [&](V v) {
                                          const V d = (v - origin) - mean;
                                          return d * d;
                                        }) /
                           static_cast<float>(n);
    const V scale(1.0f / std::sqrt(variance + a.eps));
    row_map<Isa>(x, gamma, beta, a.out.as<float>() + r * a.out.strides[0], n,
                 [&](V v, V g, V b) { return fma(((v - origin) - mean) * scale, g, b); });
  }
}

template <class Isa>
void run_rms_norm(const kernel::RmsNorm& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  const std::int64_t n = a.x.shape[1];
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * norm_rows, a.x.shape[0]);
  const float* gamma = a.gamma.as<const float>();
  for (std::int64_t r = static_cast<std::int64_t>(first) * norm_rows; r < end; ++r) {
    const float* x = a.x.as<const float>() + r * a.x.strides[0];
    const float square = row_sum<Isa>(x, n, [](V v) { return v * v; }) / static_cast<float>(n);
    const V scale(1.0f / std::sqrt(square + a.eps));
    row_map<Isa>(x, gamma, nullptr, a.out.as<float>() + r * a.out.strides[0], n,
                 [&](V v, V g, V) { return v * scale * g; });
  }
}

}  // namespace treadle::simd

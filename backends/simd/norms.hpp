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

/// One row; `out` may be `x`.
template <class Isa>
void layer_norm_row(const float* x, const float* gamma, const float* beta, float* out, std::int64_t n, float eps) {
  using V = Vec<Isa>;
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
  const V scale(1.0f / std::sqrt(variance + eps));
  row_map<Isa>(x, gamma, beta, out, n, [&](V v, V g, V b) { return fma(((v - origin) - mean) * scale, g, b); });
}

template <class Isa>
void rms_norm_row(const float* x, const float* gamma, float* out, std::int64_t n, float eps) {
  using V = Vec<Isa>;
  const float square = row_sum<Isa>(x, n, [](V v) { return v * v; }) / static_cast<float>(n);
  const V scale(1.0f / std::sqrt(square + eps));
  row_map<Isa>(x, gamma, nullptr, out, n, [&](V v, V g, V) { return v * scale * g; });
}

/// f(row) for the rows of items [first, last).
template <class F>
void for_norm_rows(std::int64_t rows, std::size_t first, std::size_t last, F f) {
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * norm_rows, rows);
  for (std::int64_t r = static_cast<std::int64_t>(first) * norm_rows; r < end; ++r) f(r);
}

template <class T = const float>
T* row_of(const TensorView& t, std::int64_t r) {
  return t.as<T>() + r * t.strides[0];
}

template <class Isa>
void run_layer_norm(const kernel::LayerNorm& a, std::size_t first, std::size_t last, void*) {
  for_norm_rows(a.x.shape[0], first, last, [&](std::int64_t r) {
    layer_norm_row<Isa>(row_of(a.x, r), a.gamma.as<const float>(), a.beta.as<const float>(), row_of<float>(a.out, r),
                        a.x.shape[1], a.eps);
  });
}

template <class Isa>
void run_rms_norm(const kernel::RmsNorm& a, std::size_t first, std::size_t last, void*) {
  for_norm_rows(a.x.shape[0], first, last, [&](std::int64_t r) {
    rms_norm_row<Isa>(row_of(a.x, r), a.gamma.as<const float>(), row_of<float>(a.out, r), a.x.shape[1], a.eps);
  });
}

/// out = x + y, where out may be x or y.
template <class Isa>
void add_row(const float* x, const float* y, float* out, std::int64_t n) {
  row_map<Isa>(x, nullptr, y, out, n, [](auto v, auto, auto b) { return v + b; });
}

template <class Isa>
kernel::Work plan_add_norm(const kernel::AddNorm& a) {
  return {a.a.shape[1] == 0 ? 0 : static_cast<std::size_t>(ceil_div(a.a.shape[0], norm_rows)), 0};
}

/// The sum of a row stays in the first-level cache until it is normalised.
template <class Isa, class F>
void run_add_norm(const kernel::AddNorm& a, std::size_t first, std::size_t last, F normalise) {
  for_norm_rows(a.a.shape[0], first, last, [&](std::int64_t r) {
    float* out = row_of<float>(a.out, r);
    float* sum = a.sum ? row_of<float>(a.sum, r) : out;
    add_row<Isa>(row_of(a.a, r), row_of(a.b, r), sum, a.a.shape[1]);
    normalise(sum, out);
  });
}

template <class Isa>
void run_add_layer_norm(const kernel::AddNorm& a, std::size_t first, std::size_t last, void*) {
  run_add_norm<Isa>(a, first, last, [&](const float* sum, float* out) {
    layer_norm_row<Isa>(sum, a.gamma.as<const float>(), a.beta.as<const float>(), out, a.a.shape[1], a.eps);
  });
}

template <class Isa>
void run_add_rms_norm(const kernel::AddNorm& a, std::size_t first, std::size_t last, void*) {
  run_add_norm<Isa>(a, first, last, [&](const float* sum, float* out) {
    rms_norm_row<Isa>(sum, a.gamma.as<const float>(), out, a.a.shape[1], a.eps);
  });
}

}  // namespace treadle::simd

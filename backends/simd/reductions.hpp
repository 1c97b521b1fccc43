#pragma once
// A row becomes one number: log-sum-exp, the index of the largest element, the loss of a class; and log-softmax, which
// is one number away from it.

#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/norms.hpp>

#include <atomic>

namespace treadle::simd {

template <class Isa, class Arguments>
kernel::Work plan_rows(const Arguments& a) {
  return {static_cast<std::size_t>(ceil_div(a.x.shape[0], norm_rows)), 0};
}

/// f(row) for the rows of work items [first, last).
template <class F>
void for_rows(std::size_t first, std::size_t last, std::int64_t rows, F f) {
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * norm_rows, rows);
  for (std::int64_t r = static_cast<std::int64_t>(first) * norm_rows; r < end; ++r) f(r);
}

inline std::int64_t read_id(const TensorView& ids, std::int64_t row) {
  const std::int64_t at = row * ids.strides[0];
  return ids.dtype == i64 ? ids.as<const std::int64_t>()[at] : ids.as<const std::int32_t>()[at];
}

/// Largest number of a row; NaN is ignored, and −inf is the result where nothing else is there.
template <class Isa>
float row_max(const float* x, std::int64_t n) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  const V lowest(-std::numeric_limits<float>::infinity());
  V top = lowest;
  std::int64_t i = 0;
  for (; i + width <= n; i += width) top = max(V::load(x + i), top);
  if (i < n) {
    const int left = static_cast<int>(n - i);
    top = max(select(mask_from_bits<Isa>((std::uint64_t{1} << left) - 1), V::load(x + i, left), lowest), top);
  }
  return reduce_max(top);
}

/// logsumexp = shift + log_sum: kept apart, since x − shift is exact where the sum of both is not.
struct LogSum {
  float shift, log_sum;
  bool empty() const { return log_sum == -std::numeric_limits<float>::infinity(); }
};

template <class Isa>
LogSum log_sum_of(const float* x, std::int64_t n) {
  using V = Vec<Isa>;
  const float largest = row_max<Isa>(x, n);
  // An infinite maximum is not subtracted: ∞ − ∞ would be NaN.
  const float shift = std::abs(largest) == std::numeric_limits<float>::infinity() ? 0.0f : largest;
  const float sum = row_sum<Isa>(x, n, [&](V v) { return simd::exp(v - V(shift)); });
  float lanes[V::width];
  simd::log(V(sum)).store(lanes);
  return {shift, lanes[0]};
}

template <class Isa>
void run_logsumexp(const kernel::LogSumExp& a, std::size_t first, std::size_t last, void*) {
  for_rows(first, last, a.x.shape[0], [&](std::int64_t r) {
    const LogSum s = log_sum_of<Isa>(a.x.as<const float>() + r * a.x.strides[0], a.x.shape[1]);
    a.out.as<float>()[r * a.out.strides[0]] = s.shift + s.log_sum;
  });
}

template <class Isa>
void run_log_softmax(const kernel::LogSoftmax& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  for_rows(first, last, a.x.shape[0], [&](std::int64_t r) {
    const float* x = a.x.as<const float>() + r * a.x.strides[0];
    const LogSum s = log_sum_of<Isa>(x, a.x.shape[1]);
    const V shift(s.shift), log_sum(s.empty() ? 0.0f : s.log_sum);
    row_map<Isa>(x, nullptr, nullptr, a.out.as<float>() + r * a.out.strides[0], a.x.shape[1],
                 [&](V v, V, V) { return (v - shift) - log_sum; });
  });
}

/// First place of the row where `found(lanes)` holds for a lane; n if nowhere.
template <class Isa, class F>
std::int64_t find_first(const float* x, std::int64_t n, F found) {
  using V = Vec<Isa>;
  constexpr int width = V::width;
  std::int64_t i = 0;
  while (i + width <= n && !any(found(V::load(x + i)))) i += width;
  while (i < n && !any(found(V(x[i])))) ++i;
  return i;
}

template <class Isa>
void run_argmax(const kernel::ArgMax& a, std::size_t first, std::size_t last, void*) {
  using V = Vec<Isa>;
  for_rows(first, last, a.x.shape[0], [&](std::int64_t r) {
    const float* x = a.x.as<const float>() + r * a.x.strides[0];
    const std::int64_t n = a.x.shape[1];
    std::int64_t best = find_first<Isa>(x, n, [](V v) { return v != v; });
    if (best == n) {
      const V largest(row_max<Isa>(x, n));
      best = find_first<Isa>(x, n, [&](V v) { return v == largest; });
    }
    a.out.as<std::int64_t>()[r * a.out.strides[0]] = best;
  });
}

template <class Isa>
kernel::Work plan_cross_entropy(const kernel::CrossEntropy& a) {
  return {static_cast<std::size_t>(ceil_div(a.logits.shape[0], norm_rows)), 0};
}

template <class Isa>
void run_cross_entropy(const kernel::CrossEntropy& a, std::size_t first, std::size_t last, void*) {
  for_rows(first, last, a.logits.shape[0], [&](std::int64_t r) {
    float& out = a.out.as<float>()[r * a.out.strides[0]];
    out = 0.0f;
    const std::int64_t id = read_id(a.ids, r);
    if (id == a.ignore_index) return;
    if (id < 0 || id >= a.logits.shape[1]) {
      if (a.bad != nullptr) std::atomic_ref(*a.bad).store(1, std::memory_order_relaxed);
      return;
    }
    const float* logits = a.logits.as<const float>() + r * a.logits.strides[0];
    const LogSum s = log_sum_of<Isa>(logits, a.logits.shape[1]);
    out = (s.shift - logits[id]) + s.log_sum;
  });
}

}  // namespace treadle::simd

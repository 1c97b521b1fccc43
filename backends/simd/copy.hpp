#pragma once
// Moving values: strided copies of any dtype, and rows of a table.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>

#include <atomic>
#include <cstring>

namespace treadle::simd {

inline constexpr std::int64_t copy_rows = 64;  // rows of the last dim in one work item

/// Shape and strides of both ends, padded in front to max_rank.
struct CopyPlan {
  std::int64_t shape[max_rank], from[max_rank], to[max_rank];

  explicit CopyPlan(const kernel::Copy& a) {
    const int pad = max_rank - a.from.rank;
    for (int i = 0; i < max_rank; ++i) {
      shape[i] = i < pad ? 1 : a.from.shape[static_cast<std::size_t>(i - pad)];
      from[i] = i < pad ? 0 : a.from.strides[static_cast<std::size_t>(i - pad)];
      to[i] = i < pad ? 0 : a.to.strides[static_cast<std::size_t>(i - pad)];
    }
  }
  std::int64_t rows() const { return shape[0] * shape[1] * shape[2] * shape[3] * shape[4]; }
};

template <class Isa>
kernel::Work plan_copy(const kernel::Copy& a) {
  const CopyPlan p(a);
  return {p.shape[5] == 0 ? 0 : static_cast<std::size_t>(ceil_div(p.rows(), copy_rows)), 0};
}

template <class T>
void copy_rows_of(const kernel::Copy& a, const CopyPlan& p, std::int64_t first, std::int64_t last) {
  for (std::int64_t r = first; r < last; ++r) {
    const T* from = a.from.as<const T>();
    T* to = a.to.as<T>();
    std::int64_t left = r;
    for (int i = max_rank - 2; i >= 0; --i) {
      const std::int64_t at = left % p.shape[i];
      left /= p.shape[i];
      from += at * p.from[i];
      to += at * p.to[i];
    }
    const std::int64_t n = p.shape[5], sf = p.from[5], st = p.to[5];
    if (sf == 1 && st == 1)
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    else
      for (std::int64_t i = 0; i < n; ++i) to[i * st] = from[i * sf];
  }
}

template <class Isa>
void run_copy(const kernel::Copy& a, std::size_t first, std::size_t last, void*) {
  const CopyPlan p(a);
  const std::int64_t begin = static_cast<std::int64_t>(first) * copy_rows;
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * copy_rows, p.rows());
  switch (size_of(a.from.dtype)) {
    case 1: return copy_rows_of<std::uint8_t>(a, p, begin, end);
    case 4: return copy_rows_of<std::uint32_t>(a, p, begin, end);
    default: return copy_rows_of<std::uint64_t>(a, p, begin, end);
  }
}

inline constexpr std::int64_t embedding_rows = 16;

inline std::int64_t id_at(const TensorView& ids, std::int64_t r) {
  const std::int64_t at = r * ids.strides[0];
  return ids.dtype == i64 ? ids.as<const std::int64_t>()[at] : ids.as<const std::int32_t>()[at];
}

inline void report_bad_id(std::int32_t* bad) {
  if (bad != nullptr) std::atomic_ref(*bad).store(1, std::memory_order_relaxed);  // threads may agree on it
}

template <class Isa>
kernel::Work plan_embedding(const kernel::Embedding& a) {
  return {static_cast<std::size_t>(ceil_div(a.ids.shape[0], embedding_rows)), 0};
}

template <class Isa>
void run_embedding(const kernel::Embedding& a, std::size_t first, std::size_t last, void*) {
  const std::int64_t begin = static_cast<std::int64_t>(first) * embedding_rows;
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * embedding_rows, a.ids.shape[0]);
  const auto bytes = static_cast<std::size_t>(a.table.shape[1]) * sizeof(float);
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t id = id_at(a.ids, r);
    float* out = a.out.as<float>() + r * a.out.strides[0];
    const bool good = id >= 0 && id < a.table.shape[0];
    if (good) {
      if (bytes != 0) std::memcpy(out, a.table.as<const float>() + id * a.table.strides[0], bytes);
      continue;
    }
    if (bytes != 0) std::memset(out, 0, bytes);
    report_bad_id(a.bad);
  }
}

}  // namespace treadle::simd

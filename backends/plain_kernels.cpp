#include <treadle/backends/plain_kernels.hpp>
#include <treadle/graph/mask/tiles.hpp>
#include <treadle/ops/position_tables.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace treadle::kernel {
namespace {

constexpr std::int64_t strip = mask::Tiles::max_strip;

std::int64_t strips(const MaskValues& a) { return (a.out.shape[2] + strip - 1) / strip; }

Work plan_mask(const MaskValues& a) {
  return {static_cast<std::size_t>(a.out.shape[0] * a.out.shape[1] * strips(a)), a.mask->workspace_bytes()};
}

void run_mask(const MaskValues& a, std::size_t first, std::size_t last, void* workspace) {
  const std::int64_t per_head = strips(a);
  for (std::size_t item = first; item < last; ++item) {
    const auto n = static_cast<std::int64_t>(item);
    const std::int64_t q0 = n % per_head * strip, h = n / per_head % a.out.shape[1], b = n / per_head / a.out.shape[1];
    const std::int64_t q1 = std::min(q0 + strip, a.out.shape[2]);
    std::uint8_t* rows = a.out.as<std::uint8_t>() + b * a.out.strides[0] + h * a.out.strides[1] + q0 * a.out.strides[2];
    for (std::int64_t q = 0; q < q1 - q0; ++q)
      std::memset(rows + q * a.out.strides[2], 0, static_cast<std::size_t>(a.out.shape[3]));
    auto stream = a.mask->stream(b, h, q0, q1, mask::Tiles::max_block, workspace);
    for (mask::Tile tile; stream.next(tile);) {
      for (std::int64_t q = 0; q < q1 - q0; ++q) {
        std::uint8_t* row = rows + q * a.out.strides[2];
        for (std::int64_t k = tile.k0; k < tile.k1; ++k)
          row[k] = tile.full ? 1 : static_cast<std::uint8_t>(tile.bits[k - tile.k0] >> q & 1u);
      }
    }
  }
}

Work plan_select(const Select& a) {
  return {static_cast<std::size_t>(a.out.shape[0] * a.out.shape[1] * a.out.shape[2]), 0};
}

void run_select(const Select& a, std::size_t first, std::size_t last, void*) {
  for (std::size_t item = first; item < last; ++item) {
    const auto n = static_cast<std::int64_t>(item);
    const std::int64_t i[3] = {n / a.out.shape[2] / a.out.shape[1], n / a.out.shape[2] % a.out.shape[1],
                               n % a.out.shape[2]};
    const auto at = [&](const TensorView& t) {
      return i[0] * t.strides[0] + i[1] * t.strides[1] + i[2] * t.strides[2];
    };
    const std::uint8_t* keep = a.keep.as<const std::uint8_t>() + at(a.keep);
    float* out = a.out.as<float>() + at(a.out);
    const float* x = a.x ? a.x.as<const float>() + at(a.x) : nullptr;
    for (std::int64_t k = 0; k < a.out.shape[3]; ++k) {
      const float kept = x != nullptr ? a.factor * x[k * a.x.strides[3]] : 0.0f;
      out[k * a.out.strides[3]] = keep[k * a.keep.strides[3]] != 0 ? kept : a.value;
    }
  }
}

std::int64_t read_id(const TensorView& ids, std::int64_t at) {
  return ids.dtype == i64 ? ids.as<const std::int64_t>()[at] : ids.as<const std::int32_t>()[at];
}

constexpr std::int64_t gather_rows = 16;  // of one work item

std::int64_t gather_parts(const Gather& a) { return (a.out.shape[2] + gather_rows - 1) / gather_rows; }

Work plan_gather(const Gather& a) {
  return {static_cast<std::size_t>(a.out.shape[0] * a.out.shape[1] * gather_parts(a)), 0};
}

void run_gather(const Gather& a, std::size_t first, std::size_t last, void*) {
  const auto size = static_cast<std::int64_t>(size_of(a.x.dtype));
  const auto bytes = static_cast<std::size_t>(a.out.shape[3] * size);
  const std::int64_t parts = gather_parts(a);
  for (std::size_t item = first; item < last; ++item) {
    const auto n = static_cast<std::int64_t>(item);
    const std::int64_t begin = n % parts * gather_rows, end = std::min(begin + gather_rows, a.out.shape[2]);
    const std::int64_t o = n / parts % a.out.shape[1], b = n / parts / a.out.shape[1];
    const std::byte* from = a.x.as<const std::byte>() + (b * a.x.strides[0] + o * a.x.strides[1]) * size;
    std::byte* to = a.out.as<std::byte>() + (b * a.out.strides[0] + o * a.out.strides[1]) * size;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t id = read_id(a.ids, b * a.ids.strides[0] + i * a.ids.strides[1]);
      if (id >= 0 && id < a.x.shape[2]) {
        if (bytes != 0) std::memcpy(to + i * a.out.strides[2] * size, from + id * a.x.strides[2] * size, bytes);
        continue;
      }
      if (bytes != 0) std::memset(to + i * a.out.strides[2] * size, 0, bytes);
      std::atomic_ref(*a.bad).store(1, std::memory_order_relaxed);  // threads may agree on it
    }
  }
}

Work plan_scatter(const Scatter& a) { return {static_cast<std::size_t>(a.rows.shape[0] * a.rows.shape[1]), 0}; }

void run_scatter(const Scatter& a, std::size_t first, std::size_t last, void*) {
  const auto size = static_cast<std::int64_t>(size_of(a.rows.dtype));
  const auto bytes = static_cast<std::size_t>(a.rows.shape[3] * size);
  for (std::size_t item = first; item < last; ++item) {
    const auto n = static_cast<std::int64_t>(item);
    const std::int64_t o = n % a.rows.shape[1], b = n / a.rows.shape[1];
    const std::byte* from = a.rows.as<const std::byte>() + (b * a.rows.strides[0] + o * a.rows.strides[1]) * size;
    std::byte* to = a.state.as<std::byte>() + (b * a.state.strides[0] + o * a.state.strides[1]) * size;
    for (std::int64_t i = 0; i < a.rows.shape[2]; ++i) {
      const std::int64_t at = read_id(a.positions, b * a.positions.strides[0] + i * a.positions.strides[1]);
      if (at >= 0 && at < a.state.shape[2]) {
        if (bytes != 0) std::memcpy(to + at * a.state.strides[2] * size, from + i * a.rows.strides[2] * size, bytes);
      } else if (at != -1) {
        std::atomic_ref(*a.bad).store(1, std::memory_order_relaxed);
      }
    }
  }
}

constexpr std::int64_t distances_each = 256;  // of one work item

std::int64_t parts(const RelativeBias& a) { return (a.out.shape[1] + distances_each - 1) / distances_each; }

Work plan_relative_bias(const RelativeBias& a) { return {static_cast<std::size_t>(parts(a)), 0}; }

void run_relative_bias(const RelativeBias& a, std::size_t first, std::size_t last, void*) {
  const RelativeBuckets buckets{a.table.shape[0], a.max_distance, a.bidirectional};
  const std::int64_t end = std::min(static_cast<std::int64_t>(last) * distances_each, a.out.shape[1]);
  for (std::int64_t d = static_cast<std::int64_t>(first) * distances_each; d < end; ++d) {
    const float* row = a.table.as<const float>() + relative_bucket(a.last - d, buckets) * a.table.strides[0];
    for (std::int64_t h = 0; h < a.out.shape[0]; ++h)
      a.out.as<float>()[h * a.out.strides[0] + d] = row[h * a.table.strides[1]];
  }
}

Work plan_sum_losses(const SumLosses&) { return {1, 0}; }

void run_sum_losses(const SumLosses& a, std::size_t, std::size_t, void*) {
  double sum = 0;
  std::int64_t counted = 0;
  for (std::int64_t r = 0; r < a.losses.shape[0]; ++r) {
    if (read_id(a.ids, r * a.ids.strides[0]) == a.ignore_index) continue;
    sum += static_cast<double>(a.losses.as<const float>()[r * a.losses.strides[0]]);
    ++counted;
  }
  *a.out.as<float>() = static_cast<float>(a.mean ? sum / static_cast<double>(counted) : sum);
}

/// Ascending, NaN last; total, so that every sort gives the same order.
template <class T>
bool before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  }
  return a < b;
}

Work plan_argsort(const ArgSort& a) { return {static_cast<std::size_t>(a.x.shape[0]), 0}; }

template <class T>
void argsort_row(const T* x, std::int64_t* out, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) out[i] = i;
  // Not stable_sort, which allocates: the index decides between equal ones.
  std::sort(out, out + width,
            [x](std::int64_t i, std::int64_t j) { return before(x[i], x[j]) || (!before(x[j], x[i]) && i < j); });
}

void run_argsort(const ArgSort& a, std::size_t first, std::size_t last, void*) {
  for (auto r = static_cast<std::int64_t>(first); r < static_cast<std::int64_t>(last); ++r) {
    std::int64_t* out = a.out.as<std::int64_t>() + r * a.out.strides[0];
    const std::int64_t at = r * a.x.strides[0], width = a.x.shape[1];
    if (a.x.dtype == f32) argsort_row(a.x.as<const float>() + at, out, width);
    if (a.x.dtype == i32) argsort_row(a.x.as<const std::int32_t>() + at, out, width);
    if (a.x.dtype == i64) argsort_row(a.x.as<const std::int64_t>() + at, out, width);
  }
}

Work plan_narrow(const Narrow& a) { return {static_cast<std::size_t>(a.x.shape[0]), 0}; }

void run_narrow(const Narrow& a, std::size_t first, std::size_t last, void*) {
  constexpr std::int64_t least = std::numeric_limits<std::int32_t>::min(),
                         most = std::numeric_limits<std::int32_t>::max();
  for (auto r = static_cast<std::int64_t>(first); r < static_cast<std::int64_t>(last); ++r) {
    const std::int64_t* x = a.x.as<const std::int64_t>() + r * a.x.strides[0];
    std::int32_t* out = a.out.as<std::int32_t>() + r * a.out.strides[0];
    for (std::int64_t i = 0; i < a.x.shape[1]; ++i) out[i] = static_cast<std::int32_t>(std::clamp(x[i], least, most));
  }
}

Work plan_top_k(const TopKMask& a) {
  return {static_cast<std::size_t>(a.x.shape[0]), static_cast<std::size_t>(a.x.shape[1]) * sizeof(float)};
}

void run_top_k(const TopKMask& a, std::size_t first, std::size_t last, void* workspace) {
  const auto above = [](float x, float y) { return before(y, x); };
  for (auto r = static_cast<std::int64_t>(first); r < static_cast<std::int64_t>(last); ++r) {
    const float* x = a.x.as<const float>() + r * a.x.strides[0];
    std::uint8_t* out = a.out.as<std::uint8_t>() + r * a.out.strides[0];
    const std::int64_t width = a.x.shape[1];
    const auto possible = [](float v) { return std::isnan(v) || v > -std::numeric_limits<float>::infinity(); };
    if (a.k >= width) {
      for (std::int64_t i = 0; i < width; ++i) out[i] = possible(x[i]) ? 1 : 0;
      continue;
    }
    auto* sorted = static_cast<float*>(workspace);
    std::copy(x, x + width, sorted);
    std::nth_element(sorted, sorted + (a.k - 1), sorted + width, above);
    const float least = sorted[a.k - 1];
    std::int64_t equal = a.k;  // places left for elements that equal the least
    for (std::int64_t i = 0; i < width; ++i) equal -= above(x[i], least) ? 1 : 0;
    for (std::int64_t i = 0; i < width; ++i) {
      const bool more = above(x[i], least), same = !more && !above(least, x[i]);
      out[i] = possible(x[i]) && (more || (same && equal > 0)) ? 1 : 0;
      if (same) --equal;
    }
  }
}

}  // namespace

const Kernel<RelativeBias> relative_bias{"relative_bias", plan_relative_bias, run_relative_bias};
const Kernel<Narrow> narrow{"narrow", plan_narrow, run_narrow};
const Kernel<ArgSort> argsort{"argsort", plan_argsort, run_argsort};
const Kernel<TopKMask> top_k_mask{"top_k_mask", plan_top_k, run_top_k};
const Kernel<Gather> gather{"gather", plan_gather, run_gather};
const Kernel<Scatter> scatter{"scatter", plan_scatter, run_scatter};
const Kernel<SumLosses> sum_losses{"sum_losses", plan_sum_losses, run_sum_losses};
const Kernel<MaskValues> mask_values{"mask_values", plan_mask, run_mask};
const Kernel<Select> select{"select", plan_select, run_select};

}  // namespace treadle::kernel

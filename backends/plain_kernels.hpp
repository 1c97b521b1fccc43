#pragma once
// Kernels of the executor that move values or cost next to nothing: masks written out for graphs in which no fused
// attention takes them, rows chosen by id, the end of a loss. One portable version serves every ISA.

#include <treadle/backends/kernel.hpp>

namespace treadle::kernel {

/// Writes a mask out: one byte per (query, key).
struct MaskValues {
  const mask::Tiles* mask = nullptr;
  TensorView out;  ///< boolean [1 or batch, 1 or heads, q_len, k_len], unit stride on the last dim
};

/// out = keep ? factor · x : value; without x: keep ? 0 : value (a mask to add). All rank 4, broadcast by stride 0, any
/// strides.
struct Select {
  TensorView keep, x, out;
  float value = 0, factor = 1;
};

/// out = Σ losses, or their mean over the rows whose id is not `ignore_index` (NaN if there are none). One item, in
/// double, in the order of the rows.
struct SumLosses {
  TensorView losses;  ///< [rows], any stride
  TensorView ids;     ///< i32 or i64 [rows], any stride
  TensorView out;     ///< one number
  std::int64_t ignore_index = -100;
  bool mean = true;
};

/// out[b, o, i, :] = x[b, o, ids[b, i], :], any dtype. Ids outside x give zeros and set *bad to 1.
struct Gather {
  TensorView x;    ///< [batch, outer, rows, inner], unit stride on inner
  TensorView ids;  ///< i32 or i64 [batch, count]
  TensorView out;  ///< [batch, outer, count, inner], unit stride on inner
  std::int32_t* bad = nullptr;
};

/// state[b, o, positions[b, i], :] = rows[b, o, i, :], any dtype; of equal positions the last counts. Position −1 is
/// nowhere, others outside the state set *bad to 1.
struct Scatter {
  TensorView rows;       ///< [batch, outer, count, inner], unit stride on inner
  TensorView positions;  ///< i32 or i64 [batch, count]
  TensorView state;      ///< [batch, outer, rows, inner], unit stride on inner
  std::int32_t* bad = nullptr;
};

/// out[h, d] = table[bucket of the relative position last − d, h]: biases by distance (relative_bucket in
/// ops/position_tables.hpp).
struct RelativeBias {
  TensorView table;  ///< [buckets, heads], any strides
  TensorView out;    ///< [heads, distances], unit stride on distances
  std::int64_t last = 0;
  std::int64_t max_distance = 128;
  bool bidirectional = true;
};

extern const Kernel<RelativeBias> relative_bias;
/// out[r, :] = the indices of x[r, :] in ascending order of its elements, equal ones in order; NaN behind all numbers.
struct ArgSort {
  TensorView x;    ///< f32, i32 or i64 [rows, width], unit stride on width
  TensorView out;  ///< i64 [rows, width], unit stride on width
};

/// out[r, i] = whether x[r, i] is among the k largest of its row: of equal ones the first; NaN counts as larger than
/// every number, −inf is never kept.
struct TopKMask {
  TensorView x;    ///< f32 [rows, width], unit stride on width
  TensorView out;  ///< boolean, as x
  std::int64_t k = 1;
};

/// out = x as i32: numbers outside it become the nearest that it has. What lookups read.
struct Narrow {
  TensorView x;    ///< i64 [rows, width], unit stride on width
  TensorView out;  ///< i32, as x
};

extern const Kernel<Narrow> narrow;
extern const Kernel<ArgSort> argsort;
extern const Kernel<TopKMask> top_k_mask;
extern const Kernel<Gather> gather;
extern const Kernel<Scatter> scatter;
extern const Kernel<SumLosses> sum_losses;
extern const Kernel<MaskValues> mask_values;
extern const Kernel<Select> select;

}  // namespace treadle::kernel

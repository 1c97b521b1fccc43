#pragma once
// Kernels of the executor that only move values: masks written out for graphs in which no fused attention takes them.
// One portable version serves every ISA.

#include <treadle/backends/kernel.hpp>

namespace treadle::kernel {

/// Writes a mask out: one byte per (query, key).
struct MaskValues {
  const mask::Tiles* mask = nullptr;
  TensorView out;  ///< boolean [1 or batch, 1 or heads, q_len, k_len], unit stride on the last dim
};

/// out = keep ? x : value; without x: keep ? 0 : value (a mask to add). All rank 4, broadcast by stride 0, any strides.
struct Select {
  TensorView keep, x, out;
  float value = 0;
};

extern const Kernel<MaskValues> mask_values;
extern const Kernel<Select> select;

}  // namespace treadle::kernel

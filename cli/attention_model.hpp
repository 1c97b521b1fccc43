#pragma once
// The graphs that `compare` measures: one attention node over given q, k and v.

#include "variants.hpp"

#include <treadle/graph/graph.hpp>

namespace treadle::cli {

/// Inputs q [batch, heads, seq, head_dim], k and v [batch, kv_heads, seq, head_dim]; output "out". A variant with
/// a table has it as a further input. `weights`: also "weights", [batch, heads, seq, seq], for those that are one
/// attention. After the passes. Throws Error if the variant cannot be made for the shape.
Graph attention_model(const Variant& variant, const AttentionShape& shape, bool weights = false);

}  // namespace treadle::cli

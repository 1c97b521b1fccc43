#pragma once
// The mask of padded batches: the input `attention_mask` [batch, seq], i32, 1 for tokens and 0 for padding.

#include <treadle/ops/rules.hpp>

namespace treadle::models {

/// Keys that are tokens.
inline constexpr Mask unpadded_keys =
    mask_mod([](auto b, auto, auto, auto k) { return lookup<i32>("attention_mask", b, k) != 0; });
/// Queries that are tokens: rows of padding see nothing, and their output is 0.
inline constexpr Mask unpadded_queries =
    mask_mod([](auto b, auto, auto q, auto) { return lookup<i32>("attention_mask", b, q) != 0; });

/// `mask`, and unpadded keys if there is padding.
constexpr std::optional<Mask> with_padding(const std::optional<Mask>& mask, bool padding) {
  if (!padding) return mask;
  if (!mask) return unpadded_keys;
  return *mask & unpadded_keys;
}

}  // namespace treadle::models

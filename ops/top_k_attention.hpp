#pragma once
// Attention over the keys with the largest scores: a reference with the cost of dense attention.

#include <treadle/ops/partial_attention.hpp>
#include <treadle/ops/sort.hpp>

namespace treadle {

struct TopKAttentionOptions {
  std::int64_t k = 32;            ///< keys that a query keeps
  std::optional<Mask> mask{};     ///< they are chosen among what it keeps
  std::optional<double> scale{};  ///< default 1 / sqrt(head_dim)
};

/// softmax over the o.k keys with the largest scores of each query, times their values; 0 for all others (Gupta et al.
/// 2021, "Memory-efficient Transformers via Top-k Attention", §2). Of equal scores the first keys are kept. Shapes as
/// in attention, with as many key heads as query heads. This is a reference for what the choice does to a model, not a
/// fast path: all N·M scores are computed and held, and once more for the keys that are kept.
constexpr Node top_k_attention(Node q, Node k, Node v, TopKAttentionOptions o = {}, Where where = Where::current()) {
  Builder& b = *q.builder;
  constexpr std::string_view leaf = "top_k_attention";
  if (!rule::fits_attention(b, q, k, v, leaf, where) || !rule::equal_heads(b, q, k, leaf, where)) return {&b, {}};
  Node scores = matmul(q, transpose(k, where), where);
  // A negative scale turns the order round.
  if (o.scale) scores = scale(scores, *o.scale, where);
  if (o.mask) {
    const auto shape = b.shape(scores);
    Node kept = mask_node(b, *o.mask, ScoreLengths{shape[2], shape[3]}, where);
    scores = select(kept, scores, -std::numeric_limits<double>::infinity(), where);
  }
  const Node largest = top_k_mask(scores, o.k, where);
  if (!b.usable(largest)) return {&b, {}};
  AttentionOptions a;
  a.mask_tensor = largest;
  a.scale = o.scale;
  return attention(q, k, v, a, where);
}

}  // namespace treadle

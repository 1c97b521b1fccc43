#pragma once
// Two-level attention: single keys nearby, means of blocks of keys further away.

#include <treadle/ops/partial_attention.hpp>
#include <treadle/ops/pool.hpp>

namespace treadle {

struct HierarchicalOptions {
  std::int64_t block = 64;  ///< tokens that one summary stands for
  std::int64_t near = 1;    ///< blocks to each side (before it, if causal) that are seen key by key, beside the own one
  bool causal = false;
  bool weighted = true;           ///< a summary counts as often as it has tokens: log(tokens) is added to its score
  std::optional<double> scale{};  ///< default 1 / sqrt(head_dim)
};

/// One softmax over the keys of the query's own and `near` neighbouring blocks, and over the mean key and value of
/// every other block (fixed blocks as in Zhu and Soricut 2021, H-Transformer-1D, with two levels). Shapes as in
/// attention, with as many keys as queries; the last block may be shorter. Causal: fine keys up to the query; coarse
/// blocks before the neighbourhood, which lie wholly in the past. If the keys of each block are equal, the weighted
/// form is softmax attention itself. The two levels are two attentions, merged by their log-sum-exps, so that nothing
/// of N×N exists. Costs N·(block·(2 near + 1) + N / block) pairs: N√N at block ≈ √N; memory is linear in N.
constexpr Node hierarchical_attention(Node q, Node k, Node v, HierarchicalOptions o = {},
                                      Where where = Where::current()) {
  Builder& b = *q.builder;
  constexpr std::string_view leaf = "hierarchical_attention";
  if (!rule::fits_attention(b, q, k, v, leaf, where) || !rule::equal_lengths(b, q, k, leaf, where)) return {&b, {}};
  if (o.block < 1 || o.near < 0) {
    Text got("blocks of ");
    got.append(o.block).append(", ").append(o.near).append(" near");
    b.fail(op::attention, leaf, {error_kind::bad_attribute, got, "blocks of at least 1, 0 or more near"}, where.line());
    return {&b, {}};
  }
  const std::int64_t block = o.block, near = o.near;
  AttentionOptions fine, coarse;
  fine.scale = coarse.scale = o.scale;
  if (o.causal) {
    fine.mask = mask::causal & mask::block_window(block, near, 0);
    coarse.mask = mask::mask_mod([=](auto, auto, auto i, auto j) { return j < i / block - near; });
  } else {
    fine.mask = mask::block_window(block, near, near);
    coarse.mask =
        mask::mask_mod([=](auto, auto, auto i, auto j) { return (j < i / block - near) | (j > i / block + near); });
  }
  if (o.weighted)
    coarse.score = scalar::score_mod([=](auto score, auto, auto, auto i, auto j) {
      return score + log(1.0 * min(block, length(i) - j * block));  // as many queries as keys: the last block's tokens
    });
  const Dim each = b.dim_number(block);
  const Node means_k = rule::pooled_runs(k, each, reduction::mean, where),
             means_v = rule::pooled_runs(v, each, reduction::mean, where);
  const Node nearby = attention(q, k, v, fine, where), far = attention(q, means_k, means_v, coarse, where);
  if (!b.usable(nearby) || !b.usable(far)) return {&b, {}};
  return merge_attention({part_of(nearby), part_of(far)}, where);
}

}  // namespace treadle

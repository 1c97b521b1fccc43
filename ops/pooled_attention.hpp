#pragma once
// Attention over pooled keys and values.

#include <treadle/ops/partial_attention.hpp>
#include <treadle/ops/pool.hpp>

namespace treadle {

struct PooledAttentionOptions {
  std::int64_t ratio = 4;                              ///< keys that become one
  treadle::reduction pool = treadle::reduction::mean;  ///< mean or max
  bool causal = false;                                 ///< only runs that lie wholly at or before the query
  std::optional<double> scale{};                       ///< default 1 / sqrt(head_dim)
};

/// Query i sees run j of `ratio` keys if all of it is in the past, or the query itself.
constexpr Mask whole_runs_of_the_past(std::int64_t ratio) {
  return mask::mask_mod([ratio](auto, auto, auto i, auto j) { return (j + 1) * ratio <= i + 1; });
}

/// softmax(scale · q pool(k)ᵀ) pool(v): keys and values pooled over runs of `ratio` positions, queries kept (Liu et al.
/// 2018, "Generating Wikipedia by summarizing long sequences", §4.2.3, with a pool for its strided convolution; cf.
/// Yuan et al. 2025, §3.3.1). Shapes as in attention; the last run may be shorter and is the pool of what it has.
/// Causal: query i sees run j if all of it is in the past or the query itself, (j + 1)·ratio ≤ i + 1; the first ratio −
/// 1 queries see nothing and give 0, and a shorter last run is never seen. Causal wants as many keys as queries. Costs
/// N·M/ratio pairs and memory of M/ratio keys and values.
constexpr Node pooled_attention(Node q, Node k, Node v, PooledAttentionOptions o = {}, Where where = Where::current()) {
  Builder& b = *q.builder;
  constexpr std::string_view leaf = "pooled_attention";
  if (!rule::fits_attention(b, q, k, v, leaf, where)) return {&b, {}};
  if (o.ratio < 1) {
    b.fail(op::attention, leaf, {error_kind::bad_attribute, Text("ratio ").append(o.ratio), "a ratio of at least 1"},
           where.line());
    return {&b, {}};
  }
  if (o.causal && !rule::equal_lengths(b, q, k, leaf, where)) return {&b, {}};
  const Dim ratio = b.dim_number(o.ratio);
  AttentionOptions a;
  a.scale = o.scale;
  if (o.causal) a.mask = whole_runs_of_the_past(o.ratio);
  return attention(q, rule::pooled_runs(k, ratio, o.pool, where), rule::pooled_runs(v, ratio, o.pool, where), a, where);
}

}  // namespace treadle

#pragma once
// Order along the last dim: its indices sorted by value, and which elements are the largest.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_argsort(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].shape.empty()) return rule::fail(f, error_kind::wrong_rank, shape_text(g, in[0].shape), "[..., n]");
  if (in[0].dtype != f32 && in[0].dtype != i32 && in[0].dtype != i64)
    return rule::fail(f, error_kind::wrong_dtype, name(in[0].dtype), "f32, i32 or i64");
  return rule::one(in[0].shape, i64);
}
/// Some comparisons for each element; the logarithm of a length is no dim expression.
constexpr Dim flops_argsort(Graph& g, const NodeSpec&, const Inputs& in) {
  return g.dims.times(rule::product(g, in[0].shape), 8);
}
/// The indices that sort the last dim in ascending order, i64: f32, i32 or i64 [.., n] → [.., n]. Stable: equal
/// elements keep their order; NaN stands behind every number (torch.argsort with stable=True). The inverse of a
/// permutation p is argsort(p). Time n log n.
constexpr Node argsort(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::argsort, "", *x.builder, where), {x}, infer_argsort);
}

constexpr Outputs infer_top_k_mask(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (in[0].shape.empty()) return rule::fail(f, error_kind::wrong_rank, shape_text(g, in[0].shape), "[..., n]");
  const std::int64_t k = rule::get_integer(s, key::top_k);
  if (k < 1) return rule::fail(f, error_kind::bad_attribute, Text("k ").append(k), "at least 1 element");
  return rule::one(in[0].shape, boolean);
}
/// Some comparisons for each element.
constexpr Dim flops_top_k_mask(Graph& g, const NodeSpec&, const Inputs& in) {
  return g.dims.times(rule::product(g, in[0].shape), 4);
}
/// True for the k largest elements of the last dim: f32 [.., n] → bool [.., n]. Of equal ones the first are kept; NaN
/// counts as larger than every number; −inf, what a mask leaves, is never kept. Rows with fewer elements keep all.
constexpr Node top_k_mask(Node x, std::int64_t k, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::top_k_mask, "", *x.builder, where);
  s.attributes = {integer(key::top_k, k)};
  return x.builder->add(s, {x}, infer_top_k_mask);
}

}  // namespace treadle

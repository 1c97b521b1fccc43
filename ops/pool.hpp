#pragma once
// Pooling: one vector for a sequence, or for each of its runs.

#include <treadle/ops/rule.hpp>

namespace treadle {

/// [.., n, d] → [.., d], or [.., ⌈n / length⌉, d]; key_lengths is i32 [batch], batch being the first dim of x.
constexpr Outputs infer_pool(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto& x = in[0].shape;
  const auto how = static_cast<reduction>(rule::get_integer(s, key::reduction));
  const bool lengths = rule::get_integer(s, key::has_mask) != 0;
  if (how != reduction::mean && how != reduction::max && how != reduction::first)
    return rule::fail(f, error_kind::bad_attribute, name(how), "mean, max or first");
  if (x.size() < 2) return rule::fail(f, error_kind::wrong_rank, shape_text(g, x), "[..., length, width]");
  if (how == reduction::first && (lengths || g.dims.constant(x[x.size() - 2]) == 0))
    return rule::fail(f, error_kind::bad_attribute, lengths ? "lengths for the first token" : "the first of 0 tokens",
                      "at least one token, without lengths");
  if (lengths) {
    if (in[1].dtype != i32) return rule::fail(f, error_kind::wrong_dtype, name(in[1].dtype), "i32 lengths");
    if (x.size() < 3 || in[1].shape.size() != 1 || in[1].shape[0] != x[0])
      return rule::fail(f, error_kind::shape_mismatch, Text("lengths ").append(shape_text(g, in[1].shape).view()),
                        Text("[batch] for ").append(shape_text(g, x).view()));
  }
  std::vector<Dim> out(x.begin(), x.end() - 2);
  if (const Attribute* run = rule::find(s, key::length)) {
    const auto each = static_cast<Dim>(run->integer);
    const auto size = g.dims.constant(each);
    if (how == reduction::first || lengths)
      return rule::fail(f, error_kind::bad_attribute, lengths ? "lengths for runs" : "the first of each run",
                        "the mean or largest of each run, without lengths");
    if (size && *size < 1)
      return rule::fail(f, error_kind::bad_attribute, Text("runs of ").append(*size), "runs of at least 1");
    out.push_back(g.dims.ceil_div(x[x.size() - 2], each));
  }
  out.push_back(x.back());
  return rule::one(out, in[0].dtype);
}
/// An addition or comparison for each element; the first token costs nothing.
constexpr Dim flops_pool(Graph& g, const NodeSpec& s, const Inputs& in) {
  const bool first = static_cast<reduction>(rule::get_integer(s, key::reduction)) == reduction::first;
  return first ? g.dims.number(0) : rule::product(g, in[0].shape);
}

namespace rule {
constexpr Node pooled(Node x, Node key_lengths, reduction how, Where where) {
  NodeSpec s = spec(op::pool, "", *x.builder, where);
  std::vector<Node> inputs;
  inputs.push_back(x);
  if (key_lengths.builder != nullptr) inputs.push_back(key_lengths);
  s.attributes = {integer(key::reduction, static_cast<std::int64_t>(how)),
                  integer(key::has_mask, key_lengths.builder != nullptr)};
  return x.builder->add(s, inputs, infer_pool);
}
}  // namespace rule

/// The mean over the sequence: [.., n, d] → [.., d]. With key_lengths (i32 [batch], from 0 to n) over the first so many
/// positions only; what stands behind them never counts, NaN included. 0 where there is nothing (Reimers and Gurevych
/// 2019, §3).
constexpr Node mean_pooling(Node x, Node key_lengths = {}, Where where = Where::current()) {
  return rule::pooled(x, key_lengths, reduction::mean, where);
}
/// The largest over the sequence, with the same lengths; NaN if one is NaN, 0 where there is nothing.
constexpr Node max_pooling(Node x, Node key_lengths = {}, Where where = Where::current()) {
  return rule::pooled(x, key_lengths, reduction::max, where);
}
namespace rule {
constexpr Node pooled_runs(Node x, Dim each, reduction how, const Where& where) {
  NodeSpec s = spec(op::pool, "", *x.builder, where);
  s.attributes = {integer(key::reduction, static_cast<std::int64_t>(how)), integer(key::has_mask, 0),
                  dim_attribute(key::length, each)};
  return x.builder->add(s, {x}, infer_pool);
}
}  // namespace rule

/// The mean over each run of `each` positions: [.., n, d] → [.., ⌈n / each⌉, d]; the last run may be shorter, and is
/// the mean of what it has (torch.nn.functional.avg_pool1d with ceil_mode, without padding).
constexpr Node mean_pooling_of_runs(Node x, DimSpec each, Where where = Where::current()) {
  return rule::pooled_runs(x, x.builder->intern(each), reduction::mean, where);
}
/// The largest over each run, in the same way; NaN if one is NaN.
constexpr Node max_pooling_of_runs(Node x, DimSpec each, Where where = Where::current()) {
  return rule::pooled_runs(x, x.builder->intern(each), reduction::max, where);
}

/// The first position's vector, a view: [.., n, d] → [.., d] (BERT's [CLS]).
constexpr Node first_token(Node x, Where where = Where::current()) {
  return rule::pooled(x, {}, reduction::first, where);
}

}  // namespace treadle

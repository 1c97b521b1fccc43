#pragma once
// Data movement: transpose, split and merge heads, concatenate, slice, append to a state.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_transpose(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  std::int64_t perm = rule::get_integer(s, key::perm);
  std::vector<Dim> out;
  unsigned seen = 0;
  for (std::size_t i = 0; i < in[0].shape.size(); ++i, perm /= 8) {
    const auto axis = static_cast<std::size_t>(perm % 8);
    if (axis >= in[0].shape.size() || (seen >> axis & 1u) != 0)
      return rule::fail(f, error_kind::bad_attribute, "axes that are no permutation", shape_text(g, in[0].shape));
    seen |= 1u << axis;
    out.push_back(in[0].shape[axis]);
  }
  return rule::one(out, in[0].dtype);
}

/// Reorders the dims: out.shape[i] = x.shape[perm[i]].
constexpr Node transpose(Node x, std::initializer_list<int> perm, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::transpose, "", *x.builder, where);
  std::int64_t code = 0, digit = 1;
  for (int axis : perm) {
    code += digit * axis;
    digit *= 8;
  }
  s.attributes.push_back(integer(key::perm, code));
  if (x.builder->usable(x) && perm.size() != x.builder->shape(x).size()) {
    x.builder->fail(op::transpose, "",
                    {error_kind::wrong_rank, Text().append(static_cast<std::int64_t>(perm.size())).append(" axes"),
                     shape_text(x.builder->graph(), x.builder->shape(x))},
                    where.line());
  }
  return x.builder->add(s, {x}, infer_transpose);
}

/// Swaps the last two dims.
constexpr Node transpose(Node x, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::transpose, "", *x.builder, where);
  const auto rank = static_cast<std::int64_t>(x.builder->shape(x).size());
  if (x.builder->usable(x) && rank < 2)
    x.builder->fail(op::transpose, "", {error_kind::wrong_rank, "fewer than two dims", "[..., m, n]"}, where.line());
  std::int64_t code = 0, digit = 1;
  for (std::int64_t i = 0; i < rank; ++i, digit *= 8)
    code += digit * (i + 2 < rank ? i : i + 2 == rank ? i + 1 : i - 1);
  s.attributes.push_back(integer(key::perm, code));
  return x.builder->add(s, {x}, infer_transpose);
}

constexpr Outputs infer_split_heads(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto& x = in[0].shape;
  const std::int64_t heads = rule::get_integer(s, key::heads);
  if (x.size() < 2) return rule::fail(f, error_kind::wrong_rank, shape_text(g, x), "[..., length, width]");
  if (heads < 1 || !g.dims.divisible(x.back(), heads))
    return rule::fail(f, error_kind::heads_do_not_divide_width, Text().append(heads).append(" heads"),
                      Text("a divisor of width ").append(dim_text(g, x.back()).view()));
  std::vector<Dim> out(x.begin(), x.end() - 2);
  out.push_back(g.dims.number(heads));
  out.push_back(x[x.size() - 2]);
  out.push_back(g.dims.divide(x.back(), heads));
  return rule::one(out, in[0].dtype);
}

/// [..., length, heads·dim] → [..., heads, length, dim].
constexpr Node split_heads(Node x, std::int64_t heads, std::string_view leaf = "", Where where = Where::current()) {
  NodeSpec s = rule::spec(op::split_heads, leaf, *x.builder, where);
  s.attributes.push_back(integer(key::heads, heads));
  return x.builder->add(s, {x}, infer_split_heads);
}

constexpr Outputs infer_merge_heads(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  const auto& x = in[0].shape;
  if (x.size() < 3) return rule::fail(f, error_kind::wrong_rank, shape_text(g, x), "[..., heads, length, dim]");
  std::vector<Dim> out(x.begin(), x.end() - 3);
  out.push_back(x[x.size() - 2]);
  out.push_back(g.dims.multiply(x[x.size() - 3], x.back()));
  return rule::one(out, in[0].dtype);
}

/// [..., heads, length, dim] → [..., length, heads·dim].
constexpr Node merge_heads(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::merge_heads, "", *x.builder, where), {x}, infer_merge_heads);
}

constexpr Outputs infer_concatenate(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto axis = static_cast<std::size_t>(rule::get_integer(s, key::axis));
  if (axis >= in[0].shape.size())
    return rule::fail(f, error_kind::bad_attribute, Text("axis ").append(static_cast<std::int64_t>(axis)),
                      shape_text(g, in[0].shape));
  std::vector<Dim> out = in[0].shape;
  for (std::size_t n = 1; n < in.size(); ++n) {
    std::vector<Dim> x = in[n].shape;
    if (x.size() != out.size()) return rule::fail(f, error_kind::wrong_rank, shape_text(g, x), shape_text(g, out));
    const Dim length = x[axis];
    x[axis] = out[axis];
    if (x != out) return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[n].shape), shape_text(g, out));
    out[axis] = g.dims.add(out[axis], length);
  }
  return rule::one(out, in[0].dtype);
}

/// Joins along `axis`; the other dims must be equal.
constexpr Node concatenate(const std::vector<Node>& parts, std::int64_t axis, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::concatenate, "", *parts[0].builder, where);
  s.attributes.push_back(integer(key::axis, axis));
  return parts[0].builder->add(s, parts, infer_concatenate);
}

constexpr Outputs infer_slice(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto axis = static_cast<std::size_t>(rule::get_integer(s, key::axis));
  if (axis >= in[0].shape.size())
    return rule::fail(f, error_kind::bad_attribute, Text("axis ").append(static_cast<std::int64_t>(axis)),
                      shape_text(g, in[0].shape));
  std::vector<Dim> out = in[0].shape;
  const auto begin = static_cast<Dim>(rule::get_integer(s, key::begin)),
             length = static_cast<Dim>(rule::get_integer(s, key::length));
  const auto end = g.dims.constant(g.dims.add(begin, length)), have = g.dims.constant(out[axis]);
  if (end && have && *end > *have)
    return rule::fail(f, error_kind::shape_mismatch, Text("a slice that ends at ").append(*end),
                      Text("at most ").append(*have));
  out[axis] = length;
  return rule::one(out, in[0].dtype);
}

/// From and to dims of the graph: for composites.
constexpr Node slice_to(Node x, std::int64_t axis, Dim begin, Dim length, Where where = Where::current()) {
  Builder& b = *x.builder;
  NodeSpec s = rule::spec(op::slice, "", b, where);
  s.attributes = {integer(key::axis, axis), dim_attribute(key::begin, begin), dim_attribute(key::length, length)};
  return b.add(s, {x}, infer_slice);
}

/// The part [begin, begin + length) along `axis`.
constexpr Node slice(Node x, std::int64_t axis, DimSpec begin, DimSpec length, Where where = Where::current()) {
  return slice_to(x, axis, x.builder->intern(begin), x.builder->intern(length), where);
}

constexpr Outputs infer_append(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto axis = static_cast<std::size_t>(rule::get_integer(s, key::axis));
  std::vector<Dim> out = in[0].shape, rows = in[1].shape;
  if (axis >= out.size() || rows.size() != out.size())
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, rows), shape_text(g, out));
  out[axis] = rows[axis];
  if (rows != out)
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[1].shape), shape_text(g, in[0].shape));
  if (in.size() == 3) {
    if (axis == 0) return rule::fail(f, error_kind::bad_attribute, "axis 0", "an axis behind the batch");
    if (in[2].dtype != i32 && in[2].dtype != i64)
      return rule::fail(f, error_kind::wrong_dtype, name(in[2].dtype), "i32 or i64 positions");
    if (const std::vector<Dim> wanted{rows[0], rows[axis]}; in[2].shape != wanted)
      return rule::fail(f, error_kind::shape_mismatch, Text("positions ").append(shape_text(g, in[2].shape).view()),
                        shape_text(g, wanted));
    return rule::one(in[0].shape, in[0].dtype);
  }
  out[axis] = g.dims.add(static_cast<Dim>(rule::get_integer(s, key::offset)), rows[axis]);
  return rule::one(out, in[0].dtype);
}

/// Writes `rows` into `state` at `offset` along `axis`, in place, and gives the rows [0, offset + n): a KV cache.
constexpr Node append(Node state, Node rows, std::int64_t axis, DimSpec offset, Where where = Where::current()) {
  Builder& b = *state.builder;
  NodeSpec s = rule::spec(op::append, "", b, where);
  s.attributes = {integer(key::axis, axis), dim_attribute(key::offset, b.intern(offset))};
  return b.add(s, {state, rows}, infer_append);
}

/// Writes `rows` [b, .., n, ..] into `state` [b, .., capacity, ..], in place, and gives all of the state: row i of
/// batch element j goes to positions[j, i] (i32 or i64 [b, n]) along `axis`, −1 nowhere. Where a cache grows is data
/// then: a step is planned once, and sequences of a batch have lengths of their own (ONNX: TensorScatter). Other
/// positions outside the state are an error of the run.
constexpr Node append(Node state, Node rows, std::int64_t axis, Node positions, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::append, "", *state.builder, where);
  s.attributes = {integer(key::axis, axis)};
  return state.builder->add(s, {state, rows, positions}, infer_append);
}

}  // namespace treadle

#pragma once
// linear (a projection) and matmul.

#include <treadle/ops/elementwise.hpp>

namespace treadle {

struct LinearOptions {
  std::int64_t width = 0;  ///< of the output
  bool bias = true;
};

constexpr Outputs infer_linear(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto& x = in[0].shape;
  const auto& w = in[1].shape;
  if (x.empty() || w.size() != 2)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, x.empty() ? x : w),
                      "x [..., in] and a weight [out, in]");
  if (x.back() != w[1]) return rule::fail(f, error_kind::wrong_width, dim_text(g, x.back()), dim_text(g, w[1]));
  std::vector<Dim> out = x;
  out.back() = w[0];
  std::size_t next = 2;
  if (rule::get_integer(s, key::has_bias) != 0) {
    const auto& b = in[next++].shape;
    if (b.size() != 1 || b[0] != w[0])
      return rule::fail(f, error_kind::shape_mismatch, shape_text(g, b),
                        Text("[").append(dim_text(g, w[0]).view()).append("]"));
  }
  if (rule::get_integer(s, key::has_residual) != 0 && in[next].shape != out)
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[next].shape), shape_text(g, out));
  return rule::one(out);
}

constexpr Dim flops_linear(Graph& g, const NodeSpec& s, const Inputs& in) {
  return g.dims.times(g.dims.multiply(rule::product(g, s.outputs[0].shape), in[1].shape[1]), 2);
}

/// y = x Wᵀ + b over the last dim. Parameters `leaf`.weight [out, in] and `leaf`.bias [out].
/// `in` says which width x must have (0: whatever it has).
constexpr Node linear(std::string_view leaf, Node x, LinearOptions o, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  if (shape.empty()) {
    b.fail(op::linear, leaf, {error_kind::wrong_rank, "a scalar", "x [..., in]"}, where.line());
    return {&b, {}};
  }
  if (o.width < 1) {
    b.fail(op::linear, leaf, {error_kind::bad_attribute, Text("width ").append(o.width), "a width of at least 1"},
           where.line());
    return {&b, {}};
  }
  if (!b.graph().dims.constant(shape.back())) {
    b.fail(op::linear, leaf,
           {error_kind::wrong_width, dim_text(b.graph(), shape.back()), "a width known at compile time"}, where.line());
    return {&b, {}};
  }
  const Dim out = b.dim_number(o.width);
  std::vector<Node> inputs{x, b.parameter(Text(leaf).append(".weight").view(), {out, shape.back()}, where)};
  if (o.bias) inputs.push_back(b.parameter(Text(leaf).append(".bias").view(), {out}, where));
  NodeSpec s = rule::spec(op::linear, leaf, b, where);
  s.attributes = {integer(key::has_bias, o.bias), integer(key::has_residual, 0),
                  integer(key::function, static_cast<std::int64_t>(activation::none))};
  return b.add(s, inputs, infer_linear);
}

/// y = x Wᵀ with a weight that exists already, such as an embedding table (tied weights).
constexpr Node linear_with(Node x, Node weight, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::linear, "", *x.builder, where);
  s.attributes = {integer(key::has_bias, 0), integer(key::has_residual, 0),
                  integer(key::function, static_cast<std::int64_t>(activation::none))};
  return x.builder->add(s, {x, weight}, infer_linear);
}

/// x [..., in], two weights [width, in], and two biases [width] or none.
constexpr Outputs infer_gated_linear(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  NodeSpec one = s;
  one.attributes.clear();
  one.attributes.push_back(integer(key::has_bias, rule::get_integer(s, key::has_bias)));
  Inputs gate, up;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i == 0 || i % 2 == 1) gate.push_back(in[i]);
    if (i == 0 || i % 2 == 0) up.push_back(i == 0 ? in[0] : in[i]);
  }
  Outputs out = infer_linear(g, one, gate, f);
  if (f) return out;
  const Outputs other = infer_linear(g, one, up, f);
  if (!f && other[0].shape != out[0].shape)
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, other[0].shape), shape_text(g, out[0].shape));
  return out;
}

/// Two projections and the product of their results; activations in epilogues are not counted, as in linear.
constexpr Dim flops_gated_linear(Graph& g, const NodeSpec& s, const Inputs& in) {
  const Dim out = rule::product(g, s.outputs[0].shape);
  return g.dims.add(g.dims.times(g.dims.multiply(out, in[1].shape[1]), 4), out);
}

constexpr Outputs infer_matmul(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  const auto& a = in[0].shape;
  const auto& b = in[1].shape;
  if (a.size() < 2 || b.size() < 2)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, a.size() < 2 ? a : b), "at least two dims");
  if (a.back() != b[b.size() - 2])
    return rule::fail(f, error_kind::wrong_width, dim_text(g, b[b.size() - 2]), dim_text(g, a.back()));
  std::vector<Dim> left, right, out;
  for (std::size_t i = 0; i + 2 < a.size(); ++i) left.push_back(a[i]);
  for (std::size_t i = 0; i + 2 < b.size(); ++i) right.push_back(b[i]);
  if (!rule::broadcast(g, left, right, out))
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, b), shape_text(g, a));
  out.push_back(a[a.size() - 2]);
  out.push_back(b.back());
  return rule::one(out);
}

constexpr Dim flops_matmul(Graph& g, const NodeSpec& s, const Inputs& in) {
  return g.dims.times(g.dims.multiply(rule::product(g, s.outputs[0].shape), in[0].shape.back()), 2);
}

/// a [..., m, k] · b [..., k, n]; batch dims broadcast.
constexpr Node matmul(Node a, Node b, Where where = Where::current()) {
  return a.builder->add(rule::spec(op::matmul, "", *a.builder, where), {a, b}, infer_matmul);
}

}  // namespace treadle

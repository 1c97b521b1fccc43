#pragma once
// add, multiply, scale and activations.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_broadcast(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  std::vector<Dim> shape;
  if (!rule::broadcast(g, in[0].shape, in[1].shape, shape))
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[1].shape), shape_text(g, in[0].shape));
  return rule::one(shape, in[0].dtype);
}

/// a + b; shapes broadcast from the right (NumPy).
constexpr Node add(Node a, Node b, Where where = Where::current()) {
  return a.builder->add(rule::spec(op::add, "", *a.builder, where), {a, b}, infer_broadcast);
}
constexpr Node operator+(Node a, Node b) { return add(a, b); }

/// a · b elementwise; shapes broadcast from the right.
constexpr Node multiply(Node a, Node b, Where where = Where::current()) {
  return a.builder->add(rule::spec(op::multiply, "", *a.builder, where), {a, b}, infer_broadcast);
}
constexpr Node operator*(Node a, Node b) { return multiply(a, b); }

/// x · factor.
constexpr Node scale(Node x, double factor, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::scale, "", *x.builder, where);
  s.attributes.push_back(number(key::factor, factor));
  return x.builder->add(s, {x}, rule::same_as_first);
}
constexpr Node operator*(Node x, double factor) { return scale(x, factor); }

/// Elementwise function: relu; gelu (erf form) and gelu_tanh (Hendrycks and Gimpel 2016); silu = x·sigmoid(x); sigmoid;
/// tanh; exp; erf; elu_plus_one (the feature map of linear attention).
constexpr Node activate(Node x, activation function, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::activation, "", *x.builder, where);
  s.attributes.push_back(integer(key::function, static_cast<std::int64_t>(function)));
  return x.builder->add(s, {x}, rule::same_as_first);
}

}  // namespace treadle

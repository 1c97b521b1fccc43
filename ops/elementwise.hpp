#pragma once
// add, multiply, scale, softcap, dropout and activations.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_broadcast(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  std::vector<Dim> shape;
  if (!rule::broadcast(g, in[0].shape, in[1].shape, shape))
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[1].shape), shape_text(g, in[0].shape));
  return rule::one(shape, in[0].dtype);
}

constexpr Outputs infer_softcap(Graph&, const NodeSpec& s, const Inputs& in, Failure& f) {
  const Attribute* c = rule::find(s, key::factor);
  if (c == nullptr || !(c->number > 0 && c->number < 1e30))
    return rule::fail(f, error_kind::bad_attribute, "a cap that is not a positive number", "above 0, for example 30");
  return rule::one(in[0].shape, in[0].dtype);
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

/// c · tanh(x / c): bounds logits or scores by ±c and hardly changes the small ones (Gemma 2 technical report, 2024,
/// §2).
constexpr Node softcap(Node x, double c, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::softcap, "", *x.builder, where);
  s.attributes.push_back(number(key::factor, c));
  return x.builder->add(s, {x}, infer_softcap);
}

constexpr bool is_probability(double p) { return p >= 0 && p <= 1; }
constexpr Outputs infer_dropout(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const Attribute* p = rule::find(s, key::p);
  if (p == nullptr || !is_probability(p->number))
    return rule::fail(f, error_kind::bad_attribute, "a p outside [0, 1]", "a probability to drop, for example 0.1");
  if (in[1].dtype != boolean) return rule::fail(f, error_kind::wrong_dtype, name(in[1].dtype), "bool, true keeps");
  std::vector<Dim> shape;
  if (!rule::broadcast(g, in[0].shape, in[1].shape, shape) || shape != in[0].shape)
    return rule::fail(f, error_kind::shape_mismatch, Text("keep ").append(shape_text(g, in[1].shape).view()),
                      shape_text(g, in[0].shape));
  return rule::one(in[0].shape, in[0].dtype);
}

/// Dropout in training, with a given pattern (Srivastava et al. 2014, scaled as torch.nn.Dropout): x / (1 − p) where
/// `keep` (bool, broadcasts to x) is true, exactly 0 elsewhere and for p = 1.
constexpr Node dropout(Node x, Node keep, double p, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::dropout, "", *x.builder, where);
  s.attributes.push_back(number(key::p, p));
  return x.builder->add(s, {x, keep}, infer_dropout);
}
/// Dropout in evaluation: x itself, no node.
constexpr Node dropout(Node x, double p, Where where = Where::current()) {
  if (x.builder->usable(x) && !is_probability(p))
    x.builder->fail(op::dropout, "",
                    {error_kind::bad_attribute, "a p outside [0, 1]", "a probability to drop, for example 0.1"},
                    where.line());
  return x;
}

/// Any of the functions below by name; `elu` with α = 1.
constexpr Node activate(Node x, activation function, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::activation, "", *x.builder, where);
  s.attributes.push_back(integer(key::function, static_cast<std::int64_t>(function)));
  return x.builder->add(s, {x}, rule::same_as_first);
}

/// A function that is both a value, `{.activation = gelu}`, and a builder of nodes, `gelu(x)`.
struct NamedActivation {
  activation function;
  constexpr operator activation() const { return function; }
  constexpr Node operator()(Node x, Where where = Where::current()) const { return activate(x, function, where); }
};
/// max(x, 0).
inline constexpr NamedActivation relu{activation::relu};
/// x Φ(x), the erf form (Hendrycks and Gimpel 2016, §2).
inline constexpr NamedActivation gelu{activation::gelu};
/// x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))) (the same, §2).
inline constexpr NamedActivation gelu_tanh{activation::gelu_tanh};
/// x σ(1.702 x) (the same, §2: the sigmoid approximation; CLIP's checkpoints).
inline constexpr NamedActivation quick_gelu{activation::quick_gelu};
/// x σ(x) (Elfwing et al. 2018, eq. 5), also called swish.
inline constexpr NamedActivation silu{activation::silu};
/// max(x, 0)² (So et al. 2021, Primer, §3).
inline constexpr NamedActivation squared_relu{activation::squared_relu};
/// log(1 + eˣ) (Dugas et al. 2001), exact for large and for very negative x.
inline constexpr NamedActivation softplus{activation::softplus};
/// elu(x) + 1: the feature map of linear attention (Katharopoulos et al. 2020, eq. 7).
inline constexpr NamedActivation elu_plus_one{activation::elu_plus_one};

/// x above 0, α(eˣ − 1) below (Clevert et al. 2016, eq. 15).
constexpr Node elu(Node x, double alpha = 1, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::activation, "", *x.builder, where);
  s.attributes.push_back(integer(key::function, static_cast<std::int64_t>(activation::elu)));
  if (alpha != 1) s.attributes.push_back(number(key::alpha, alpha));
  return x.builder->add(s, {x}, rule::same_as_first);
}

// Functions, not values: traced expressions and <cmath> have these names too, and overloads live beside each other. As
// an option of a layer they are written activation::tanh, activation::sigmoid, ….

/// 1 / (1 + e⁻ˣ).
constexpr Node sigmoid(Node x, Where where = Where::current()) { return activate(x, activation::sigmoid, where); }
constexpr Node tanh(Node x, Where where = Where::current()) { return activate(x, activation::tanh, where); }
constexpr Node exp(Node x, Where where = Where::current()) { return activate(x, activation::exp, where); }
constexpr Node erf(Node x, Where where = Where::current()) { return activate(x, activation::erf, where); }
/// Natural logarithm: −inf at 0, NaN below.
constexpr Node log(Node x, Where where = Where::current()) { return activate(x, activation::log, where); }

}  // namespace treadle

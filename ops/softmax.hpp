#pragma once
// Over the last dim: softmax, its logarithm, log-sum-exp, the largest element, and the loss made of them.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Dim flops_softmax(Graph& g, const NodeSpec&, const Inputs& in) {
  return g.dims.times(rule::product(g, in[0].shape), 5);
}
/// A subtraction, exp and an addition for each element.
constexpr Dim flops_logsumexp(Graph& g, const NodeSpec&, const Inputs& in) {
  return g.dims.times(rule::product(g, in[0].shape), 3);
}
/// A comparison for each element.
constexpr Dim flops_argmax(Graph& g, const NodeSpec&, const Inputs& in) { return rule::product(g, in[0].shape); }

/// exp(x − max) / Σ exp(x − max) over the last dim. A row of −inf alone gives 0.
constexpr Node softmax(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::softmax, "", *x.builder, where), {x}, rule::same_as_first);
}

/// x − logsumexp(x) over the last dim. A row of −inf alone gives −inf, as the logarithm of softmax's 0.
constexpr Node log_softmax(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::log_softmax, "", *x.builder, where), {x}, rule::same_as_first);
}

/// [.., n] → [..].
constexpr Outputs infer_logsumexp(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].shape.empty()) return rule::fail(f, error_kind::wrong_rank, shape_text(g, in[0].shape), "[..., n]");
  return rule::one(std::vector<Dim>(in[0].shape.begin(), in[0].shape.end() - 1), in[0].dtype);
}
/// log Σ exp(x) over the last dim, which goes away: [.., n] → [..]. −inf for a row of −inf alone and for n = 0; +inf if
/// the row holds +inf; NaN if it holds NaN.
constexpr Node logsumexp(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::logsumexp, "", *x.builder, where), {x}, infer_logsumexp);
}

constexpr Outputs infer_argmax(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].shape.empty() || g.dims.constant(in[0].shape.back()) == 0)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, in[0].shape), "[..., n] with n at least 1");
  return rule::one(std::vector<Dim>(in[0].shape.begin(), in[0].shape.end() - 1), i64);
}
/// Index of the largest element of the last dim, i64: [.., n] → [..]. The first of equal ones; NaN counts as larger
/// than every number (as in PyTorch and NumPy), so the first NaN wins. n = 0 is an error at the latest when the lengths
/// are bound.
constexpr Node argmax(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::argmax, "", *x.builder, where), {x}, infer_argmax);
}

constexpr Outputs infer_cross_entropy(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (in[1].dtype != i32 && in[1].dtype != i64)
    return rule::fail(f, error_kind::wrong_dtype, name(in[1].dtype), "i32 or i64 ids");
  if (in[0].shape.empty()) return rule::fail(f, error_kind::wrong_rank, "logits without a dim", "[..., vocabulary]");
  const std::vector<Dim> rows(in[0].shape.begin(), in[0].shape.end() - 1);
  if (in[1].shape != rows)
    return rule::fail(f, error_kind::shape_mismatch, Text("ids ").append(shape_text(g, in[1].shape).view()),
                      shape_text(g, rows));
  const auto how = static_cast<reduction>(rule::get_integer(s, key::reduction));
  if (how != reduction::none && how != reduction::sum && how != reduction::mean)
    return rule::fail(f, error_kind::bad_attribute, name(how), "none, sum or mean");
  return rule::one(how == reduction::none ? rows : std::vector<Dim>(), in[0].dtype);
}

struct CrossEntropyOptions {
  treadle::reduction reduction = treadle::reduction::mean;
  std::int64_t ignore_index = -100;  ///< rows with this id count for nothing
};

/// logsumexp(logits) − logits[id] for each row, and their mean, sum, or none of both (torch.nn.functional.cross_entropy
/// with class indices, except that the classes are always the last dim). Logits [.., V], ids [..] i32 or i64 → one
/// number, shape [], or [..]. Ignored rows give 0; the mean is over the others, and NaN if there are none. Other ids
/// outside [0, V) are an error of the run.
constexpr Node cross_entropy(Node logits, Node ids, CrossEntropyOptions o = {}, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::cross_entropy, "", *logits.builder, where);
  s.attributes = {integer(key::reduction, static_cast<std::int64_t>(o.reduction)),
                  integer(key::ignore_index, o.ignore_index)};
  return logits.builder->add(s, {logits, ids}, infer_cross_entropy);
}

}  // namespace treadle

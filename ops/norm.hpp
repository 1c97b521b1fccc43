#pragma once
// Layer norm (Ba et al. 2016) and RMS norm (Zhang and Sennrich 2019), over the last dim.

#include <treadle/ops/rule.hpp>

namespace treadle {

struct NormOptions {
  double eps = 1e-5;  ///< added to the variance (mean square), inside the root
  bool weight = true;
  bool bias = true;  ///< layer norm only
};

constexpr Outputs infer_norm(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].shape.empty()) return rule::fail(f, error_kind::wrong_rank, "a scalar", "[..., width]");
  for (std::size_t i = 1; i < in.size(); ++i)
    if (in[i].shape.size() != 1 || in[i].shape[0] != in[0].shape.back())
      return rule::fail(f, error_kind::wrong_width, shape_text(g, in[i].shape),
                        Text("[").append(dim_text(g, in[0].shape.back()).view()).append("]"));
  return rule::one(in[0].shape);
}

constexpr Dim flops_norm(Graph& g, const NodeSpec& s, const Inputs&) {
  return g.dims.times(rule::product(g, s.outputs[0].shape), 8);
}

/// add_layer_norm, add_rms_norm: x and y of one shape, then gamma and beta.
constexpr Outputs infer_add_norm(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (in[0].shape != in[1].shape)
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[1].shape), shape_text(g, in[0].shape));
  Inputs norm = in;
  norm.erase(norm.begin() + 1);
  Outputs out = infer_norm(g, s, norm, f);
  if (!f) out.push_back(out[0]);
  return out;
}

constexpr Dim flops_add_norm(Graph& g, const NodeSpec& s, const Inputs&) {
  return g.dims.times(rule::product(g, s.outputs[0].shape), 9);
}

namespace rule {
constexpr Node norm(op o, std::string_view leaf, Node x, const NormOptions& n, bool bias, const Where& where) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  std::vector<Node> inputs{x};
  const auto shape = b.shape(x);
  if (shape.empty()) {
    b.fail(o, leaf, {error_kind::wrong_rank, "a scalar", "[..., width]"}, where.line());
    return {&b, {}};
  }
  if (n.weight) inputs.push_back(b.parameter(Text(leaf).append(".weight").view(), {shape.back()}, where));
  if (bias) inputs.push_back(b.parameter(Text(leaf).append(".bias").view(), {shape.back()}, where));
  NodeSpec s = spec(o, leaf, b, where);
  s.attributes = {integer(key::has_weight, n.weight), integer(key::has_bias, bias), number(key::eps, n.eps)};
  return b.add(s, inputs, infer_norm);
}
}  // namespace rule

/// (x − mean) / sqrt(variance + eps) · weight + bias.
constexpr Node layer_norm(std::string_view leaf, Node x, NormOptions o = {}, Where where = Where::current()) {
  return rule::norm(op::layer_norm, leaf, x, o, o.bias && o.weight, where);
}

/// x / sqrt(mean(x²) + eps) · weight.
constexpr Node rms_norm(std::string_view leaf, Node x, NormOptions o = {.eps = 1e-6}, Where where = Where::current()) {
  return rule::norm(op::rms_norm, leaf, x, o, false, where);
}

}  // namespace treadle

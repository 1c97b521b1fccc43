#pragma once
// Mixture of experts (Shazeer et al. 2017; Fedus et al. 2021): each token goes through the few feed-forward networks
// that a router chooses for it.

#include <treadle/ops/linear.hpp>

namespace treadle {

constexpr Outputs infer_moe(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto &x = in[0].shape, &router = in[1].shape, &up = in[2].shape, &down = in[3].shape;
  if (x.empty()) return rule::fail(f, error_kind::wrong_rank, "a scalar", "x [..., width]");
  if (router.size() != 2 || router[1] != x.back())
    return rule::fail(f, error_kind::shape_mismatch, Text("router ").append(shape_text(g, router).view()),
                      Text("[experts, ").append(dim_text(g, x.back()).view()).append("]"));
  if (up.size() != 3 || up[0] != router[0] || up[2] != x.back())
    return rule::fail(f, error_kind::shape_mismatch, Text("up ").append(shape_text(g, up).view()),
                      Text("[experts, hidden, width] of router ").append(shape_text(g, router).view()));
  if (down.size() != 3 || down[0] != router[0] || down[2] != up[1])
    return rule::fail(f, error_kind::shape_mismatch, Text("down ").append(shape_text(g, down).view()),
                      Text("[experts, width, hidden] of up ").append(shape_text(g, up).view()));
  if (rule::get_integer(s, key::has_gate) != 0 && in[4].shape != up)
    return rule::fail(f, error_kind::shape_mismatch, Text("gate ").append(shape_text(g, in[4].shape).view()),
                      Text("up ").append(shape_text(g, up).view()));
  const auto experts = g.dims.constant(router[0]);
  const std::int64_t top_k = rule::get_integer(s, key::top_k);
  if (!experts || top_k < 1 || top_k > *experts) {
    Text expected("1");
    if (experts) expected.append(" to ").append(*experts).append(" experts");
    return rule::fail(f, error_kind::bad_attribute, Text("top_k ").append(top_k), expected);
  }
  std::vector<Dim> out = x;
  out.back() = down[1];
  return rule::one(out);
}

/// The router over every expert, and the chosen experts alone: tokens · top_k rows.
constexpr Dim flops_moe(Graph& g, const NodeSpec& s, const Inputs& in) {
  const auto& x = in[0].shape;
  Dim tokens = g.dims.number(1);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) tokens = g.dims.multiply(tokens, x[i]);
  const Dim into = g.dims.multiply(in[2].shape[1], x.back()), out_of = g.dims.multiply(in[3].shape[1], in[3].shape[2]);
  const Dim row = g.dims.add(g.dims.times(into, rule::get_integer(s, key::has_gate) != 0 ? 2 : 1), out_of);
  const Dim token =
      g.dims.add(g.dims.times(row, rule::get_integer(s, key::top_k)), g.dims.multiply(in[1].shape[0], in[1].shape[1]));
  return g.dims.times(g.dims.multiply(tokens, token), 2);
}

struct MoeOptions {
  std::int64_t experts = 0, top_k = 1, hidden = 0;
  treadle::activation activation = silu;
  bool gated = false;       ///< experts are down(activation(gate x) · up x) instead of down(activation(up x))
  bool renormalise = true;  ///< the weights of the chosen experts add up to 1
};

/// The node on weights that exist already: router [experts, width], up and gate [experts, hidden, width], down
/// [experts, width out, hidden].
constexpr Node moe_with(Node x, Node router, Node up, Node down, MoeOptions o, Node gate = {},
                        Where where = Where::current()) {
  Builder& b = *x.builder;
  NodeSpec s = rule::spec(op::moe, "", b, where);
  std::vector<Node> inputs{x, router, up, down};
  const bool gated = gate.builder != nullptr;
  if (gated) inputs.push_back(gate);
  s.attributes = {integer(key::top_k, o.top_k), integer(key::renormalise, o.renormalise),
                  integer(key::function, static_cast<std::int64_t>(o.activation)), integer(key::has_gate, gated)};
  return b.add(s, inputs, infer_moe);
}

/// Σ over the top_k experts e of softmax(router x): weight_e · expert_e(x). The softmax runs over all experts; of equal
/// ones the first is chosen. Only chosen experts are computed. Parameters `leaf`.router.weight [experts, width],
/// `leaf`.experts.up_proj, `leaf`.experts.down_proj and, gated, `leaf`.experts.gate_proj, each stacked over the
/// experts; no biases (Shazeer et al. 2017, eq. 1–5 without noise; Jiang et al. 2024, §2.1).
constexpr Node moe(std::string_view leaf, Node x, MoeOptions o, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto width = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  if (!width) {
    b.fail(op::moe, leaf, {error_kind::wrong_width, "a width unknown at compile time", "a number"}, where.line());
    return {&b, {}};
  }
  if (o.experts < 1 || o.hidden < 1) {
    b.fail(op::moe, leaf,
           {error_kind::bad_attribute, Text().append(o.experts).append(" experts of hidden width ").append(o.hidden),
            "at least 1 of each"},
           where.line());
    return {&b, {}};
  }
  if (o.top_k < 1 || o.top_k > o.experts) {
    b.fail(
        op::moe, leaf,
        {error_kind::bad_attribute, Text("top_k ").append(o.top_k), Text("1 to ").append(o.experts).append(" experts")},
        where.line());
    return {&b, {}};
  }
  b.push_scope(leaf);
  const Dim experts = b.dim_number(o.experts), hidden = b.dim_number(o.hidden), w = shape.back();
  const Node router = b.parameter("router.weight", {experts, w}, where);
  Node gate{};
  if (o.gated) gate = b.parameter("experts.gate_proj", {experts, hidden, w}, where);
  const Node up = b.parameter("experts.up_proj", {experts, hidden, w}, where);
  const Node down = b.parameter("experts.down_proj", {experts, w, hidden}, where);
  const Node y = moe_with(x, router, up, down, o, gate, where);
  b.pop_scope();
  return y;
}

}  // namespace treadle

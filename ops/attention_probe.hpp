#pragma once
// What attention's weights were: all of them, or summaries in memory linear in the length.
//
// A probe is a node of its own beside the attention that it looks at. It reads that node's log-sum-exp, so one pass
// over the same tiles gives every weight as exp(score − lse); attention itself runs as it always does.

#include <treadle/ops/attention.hpp>

namespace treadle {

/// (q, k, lse, mask?, bias?, sink?, tables…).
constexpr Outputs infer_attention_probe(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto &q = in[0].shape, &k = in[1].shape, &lse = in[2].shape;
  if (q.size() != 4 || k.size() != 4)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, q.size() != 4 ? q : k), "[batch, heads, length, dim]");
  if (!check_heads(g, q, k, f)) return {};
  if (lse.size() != 3 || lse[0] != q[0] || lse[1] != q[1] || lse[2] != q[2])
    return rule::fail(f, error_kind::shape_mismatch, Text("log-sum-exp ").append(shape_text(g, lse).view()),
                      "[batch, heads, length] of q");
  if (!check_scores(g, s, in, f)) return {};
  switch (static_cast<probe>(rule::get_integer(s, key::probe))) {
    case probe::weights: return rule::one({q[0], q[1], q[2], k[2]});
    case probe::entropy: return rule::one({q[0], q[1], q[2]});
    case probe::column_sums: return rule::one({q[0], q[1], k[2]});
    case probe::top_k: break;
  }
  const std::int64_t top_k = rule::get_integer(s, key::top_k);
  if (top_k < 1) return rule::fail(f, error_kind::bad_attribute, Text("top_k ").append(top_k), "at least 1");
  Outputs o = rule::one({q[0], q[1], q[2], g.dims.number(top_k)}, i64);
  o.push_back({f32, o[0].shape});
  return o;
}

/// 2·D for every (query, key) pair that the mask keeps.
constexpr Dim flops_attention_probe(Graph& g, const NodeSpec& s, const Inputs& in) {
  const auto& q = in[0].shape;
  return g.dims.multiply(g.dims.multiply(g.dims.multiply(q[0], q[1]), kept_pairs(g, s, in)), g.dims.times(q[3], 2));
}

namespace rule {
/// The attention behind `out`: itself, or what a layer's output projection and merge_heads have made of it.
constexpr Value attention_behind(const Graph& g, Value v) {
  const GraphView view = g.view();
  while (view.nodes[v.node].op == op::linear || view.nodes[v.node].op == op::merge_heads) v = view.inputs(v.node)[0];
  return v;
}

constexpr Node probed(Node out, probe what, std::int64_t top_k, const Where& where) {
  Builder& b = *out.builder;
  if (!b.usable(out)) return {&b, {}};
  const Value v = attention_behind(b.graph(), out.value);
  if (b.graph().nodes[v.node].op != op::attention) {
    b.fail(op::attention_probe, "",
           {error_kind::bad_attribute, Text("a probe of ").append(name(b.graph().nodes[v.node].op)),
            "the result of attention"},
           where.line());
    return {&b, {}};
  }
  NodeSpec s = spec(op::attention_probe, "", b, where);
  const GraphView g = b.graph().view();
  std::vector<Node> inputs;
  for (std::size_t i = 0; i < g.inputs(v.node).size(); ++i)
    inputs.push_back(i == 2 ? Node{&b, {v.node, 1}} : Node{&b, g.inputs(v.node)[i]});
  for (const Attribute& a : g.attributes_of(v.node)) s.attributes.push_back(a);
  s.attributes.push_back(integer(key::probe, static_cast<std::int64_t>(what)));
  if (what == probe::top_k) s.attributes.push_back(integer(key::top_k, top_k));
  return b.add(s, inputs, infer_attention_probe);
}
}  // namespace rule

// `out` is a result of `attention`, or of a layer that ends in one (self_attention, cross_attention). Anything else is
// an error of the model. With a sink, weights are those of the keys: what the sink takes is missing from their sum.
// Rows that may attend to nothing have weights 0. The weights are as exact as the log-sum-exp: to about |lse| · 6e-8.

/// All weights, f32 [B, H, N, M]. N·M numbers a head: for short sequences and pictures.
constexpr Node attention_weights(Node out, Where where = Where::current()) {
  return rule::probed(out, probe::weights, 0, where);
}

/// −Σ_j p_ij ln p_ij of every row, f32 [B, H, N]: 0 if one key has all weight (or the row is empty), ln M if M keys
/// share it evenly. Memory linear in N.
constexpr Node attention_entropy(Node out, Where where = Where::current()) {
  return rule::probed(out, probe::entropy, 0, where);
}

/// Σ_i p_ij, the attention that every key receives, f32 [B, H, M]; summed in double, in the order of the queries.
/// Memory linear in N. Runs in parallel over batch elements and heads alone.
constexpr Node attention_column_sums(Node out, Where where = Where::current()) {
  return rule::probed(out, probe::column_sums, 0, where);
}

struct AttentionTopK {
  Node indices;  ///< i64 [B, H, N, k], −1 where a row sees fewer keys
  Node weights;  ///< f32 [B, H, N, k], largest first, 0 there
};

/// The k keys with the largest scores of every row, of equal ones the first, and their weights. Memory linear in N.
constexpr AttentionTopK attention_top_k(Node out, std::int64_t k, Where where = Where::current()) {
  const Node r = rule::probed(out, probe::top_k, k, where);
  return {r, r.valid() ? Node{r.builder, {r.value.node, 1}} : r};
}

}  // namespace treadle

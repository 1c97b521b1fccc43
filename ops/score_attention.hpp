#pragma once
// Attention with scores that are learned: Bahdanau's additive and Luong's bilinear ("general") form.

#include <treadle/ops/attention.hpp>

namespace treadle {

constexpr Outputs infer_additive_scores(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  const auto &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  if (q.size() < 2 || q.size() != k.size() || v.size() != 1)
    return rule::fail(f, error_kind::wrong_rank,
                      Text("q ").append(shape_text(g, q).view()).append(", k ").append(shape_text(g, k).view()),
                      "q [..., n, width], k [..., m, width] and v [width]");
  if (q.back() != k.back() || q.back() != v[0])
    return rule::fail(f, error_kind::wrong_width,
                      Text("k ").append(dim_text(g, k.back()).view()).append(", v ").append(dim_text(g, v[0]).view()),
                      Text("q ").append(dim_text(g, q.back()).view()));
  std::vector<Dim> out = q;
  out.back() = k[k.size() - 2];
  for (std::size_t i = 0; i + 2 < q.size(); ++i)
    if (q[i] != k[i]) return rule::fail(f, error_kind::shape_mismatch, shape_text(g, k), shape_text(g, q));
  return rule::one(out);
}

/// A sum, a tanh and a multiplication with addition for every (query, key, feature).
constexpr Dim flops_additive_scores(Graph& g, const NodeSpec& s, const Inputs& in) {
  return g.dims.times(g.dims.multiply(rule::product(g, s.outputs[0].shape), in[0].shape.back()), 4);
}

/// e_ij = v · tanh(q_i + k_j): q [..., n, width], k [..., m, width], v [width] → [..., n, m]. Nothing of n·m·width
/// numbers is ever held (Bahdanau et al. 2015, appendix A.1.2).
constexpr Node additive_scores(Node q, Node k, Node v, Where where = Where::current()) {
  return q.builder->add(rule::spec(op::additive_scores, "", *q.builder, where), {q, k, v}, infer_additive_scores);
}

/// The same scores as a traced function of the rows of query and key, for `AttentionOptions::score`: attention
/// evaluates it tile by tile, so that nothing of n·m numbers is held either. `table` is an input or parameter [width].
constexpr scalar::Function additive_score(std::string_view table) {
  return scalar::score_mod([&](auto, auto, auto, auto q, auto k) {
    return sum(q, [&](auto i) { return scalar::lookup(table, i) * tanh(q[i] + k[i]); });
  });
}

struct AdditiveAttentionOptions {
  std::int64_t width = 0;      ///< of the hidden layer of the score
  std::optional<Mask> mask{};  ///< over positions alone
};

/// softmax_j(v · tanh(W_s query_i + W_h keys_j)) values; query [batch, n, ·], keys [batch, m, ·], values [batch, m, ·].
/// Parameters `leaf`.query.weight, `leaf`.key.weight [width, ·] and `leaf`.score.weight [width]; no biases (Bahdanau et
/// al. 2015, eq. 5–6).
constexpr Node additive_attention(std::string_view leaf, Node query, Node keys, Node values, AdditiveAttentionOptions o,
                                  Where where = Where::current()) {
  Builder& b = *query.builder;
  if (!b.usable(query) || !b.usable(keys) || !b.usable(values)) return {&b, {}};
  if (o.width < 1) {
    b.fail(op::additive_scores, leaf,
           {error_kind::bad_attribute, Text("width ").append(o.width), "a width of at least 1"}, where.line());
    return {&b, {}};
  }
  b.push_scope(leaf);
  // As one head, so that masks broadcast as in attention.
  const Node q = split_heads(linear("query", query, {.width = o.width, .bias = false}, where), 1, "", where),
             k = split_heads(linear("key", keys, {.width = o.width, .bias = false}, where), 1, "", where);
  b.parameter("score.weight", {b.dim_number(o.width)}, where);
  b.pop_scope();
  const Node y = attention(q, k, split_heads(values, 1, "", where),
                           {.mask = o.mask, .score = additive_score("score.weight"), .scale = 1.0}, where);
  return merge_heads(y, where);
}

struct BilinearAttentionOptions {
  std::optional<Mask> mask{};
  double scale = 1;
};

/// softmax_j(scale · query_iᵀ W keys_j) values, Luong's "general" score; query [batch, n, ·], keys [batch, m, ·],
/// values [batch, m, ·]. Parameter `leaf`.key.weight = W [query width, key width]. The product W keys_j is made first,
/// so that what is left is scaled dot-product attention of one head (Luong et al. 2015, eq. 8).
constexpr Node bilinear_attention(std::string_view leaf, Node query, Node keys, Node values,
                                  BilinearAttentionOptions o = {}, Where where = Where::current()) {
  Builder& b = *query.builder;
  if (!b.usable(query) || !b.usable(keys) || !b.usable(values)) return {&b, {}};
  const auto shape = b.shape(query);
  const auto width = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  if (!width) {
    b.fail(op::attention, leaf, {error_kind::wrong_width, "a width unknown at compile time", "a number"}, where.line());
    return {&b, {}};
  }
  b.push_scope(leaf);
  const Node k = linear("key", keys, {.width = *width, .bias = false}, where);
  b.pop_scope();
  const Node y = attention(split_heads(query, 1, "", where), split_heads(k, 1, "", where),
                           split_heads(values, 1, "", where), {.mask = o.mask, .scale = o.scale}, where);
  return merge_heads(y, where);
}

}  // namespace treadle

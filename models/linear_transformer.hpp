#pragma once
// Language models whose attention is a state of constant size: the linear Transformer (Katharopoulos et al. 2020) and,
// with random features, Performer (Choromanski et al. 2021).

#include <treadle/ops/rules.hpp>

namespace treadle::models {

struct LinearTransformerConfig {
  std::int64_t vocabulary = 256, width = 512, layers = 8, heads = 8, hidden = 2048, positions = 1024;
  activation function = gelu;
  double eps = 1e-5;            ///< of the norms
  double attention_eps = 1e-6;  ///< added to the denominator of elu + 1
  /// 0: φ = elu + 1. More: so many positive random features, FAVOR+, whose projection is a parameter of each layer.
  std::int64_t features = 0;
  bool sinusoidal = false;       ///< positions, `positions` of them; else learned
  bool norm_first = false;       ///< pre-norm
  bool tied = false;             ///< the last matrix is the table of embeddings
  bool given_positions = false;  ///< takes position_ids i32 [batch, seq]
  /// What the tokens of earlier runs left lies in the states `layers.attention.state`; zeros before the first token. A
  /// run may have any number of tokens. Takes position_ids, and last_token i32 [batch, 1]: `logits` are those of that
  /// token of each sequence alone (models/generation.hpp).
  bool state = false;
  bool every_layer = false;  ///< output `layers` [layers, batch, seq, width]: the hidden states
};

namespace detail {
/// Causal attention (Katharopoulos et al. 2020, eq. 9 and 16–20; Choromanski et al. 2021, eq. 5–7).
constexpr Node linear_transformer_attention(Iteration& it, std::string_view leaf, Node x,
                                            const LinearTransformerConfig& c) {
  Builder& g = *x.builder;
  g.push_scope(leaf);
  const std::int64_t dim = c.width / c.heads;
  const auto heads = [&](std::string_view name) { return split_heads(linear(name, x, {.width = c.width}), c.heads); };
  const Node q = heads("query_projection"), k = heads("key_projection"), v = heads("value_projection");
  Node state{};
  LinearAttentionResult r{};
  if (c.features > 0) {
    if (c.state) state = it.state("state", f32, {batch, c.heads, c.features, dim + 2});
    const Node projection = g.parameter("projection", {g.dim_number(c.features), g.dim_number(dim)});
    r = favor_attention_from(q, k, v, {.causal = true, .projection = projection, .state = state});
  } else {
    if (c.state) state = it.state("state", f32, {batch, c.heads, dim, dim + 1});
    r = linear_attention_from(q, k, v, {.causal = true, .eps = c.attention_eps, .state = state});
  }
  if (c.state) append(state, r.state, 2, 0);
  const Node out = linear("out_projection", merge_heads(r.out), {.width = c.width});
  g.pop_scope();
  return out;
}

constexpr Node linear_transformer_positions(Builder& g, Node x, const LinearTransformerConfig& c) {
  if (!c.state && !c.given_positions) {
    if (c.sinusoidal) return x + sinusoidal_positions();
    return x + learned_positions("position_embeddings", {.length = c.positions});
  }
  const Node ids = g.input("position_ids", i32, {batch, seq});
  if (c.sinusoidal) return x + embedding_with(sinusoidal_positions(g, c.positions, c.width), ids);
  return x + embedding("position_embeddings", ids, {.vocabulary = c.positions, .width = c.width});
}
}  // namespace detail

/// Inputs input_ids and, as configured, position_ids, i32 [batch, seq], and last_token. Outputs `hidden` [batch, seq,
/// width] after the last norm, and `logits` [batch, seq or 1, vocabulary]. Layers and names as in the authors' library.
constexpr Graph linear_transformer_lm(const LinearTransformerConfig& c) {
  Builder g;
  const Node tokens = g.input("input_ids", i32, {batch, seq});
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("word_embeddings.weight", {words, width});
  Node x = detail::linear_transformer_positions(g, embedding_with(table, tokens), c);
  const RepeatResult layers = repeat("layers", c.layers, x, [&](Iteration& it, Node y) {
    const auto norm = [&](std::string_view leaf, Node z) { return layer_norm(leaf, z, {.eps = c.eps}); };
    const auto feed_forward = [&](Node z) {
      const Node h = activate(linear("linear1", z, {.width = c.hidden}), c.function);
      return linear("linear2", h, {.width = c.width});
    };
    if (c.norm_first) {
      y = y + detail::linear_transformer_attention(it, "attention", norm("norm1", y), c);
      y = y + feed_forward(norm("norm2", y));
    } else {
      y = norm("norm1", y + detail::linear_transformer_attention(it, "attention", y, c));
      y = norm("norm2", y + feed_forward(y));
    }
    if (c.every_layer) it.side("layers", y);
    return y;
  });
  x = layer_norm("norm", layers.carried[0], {.eps = c.eps});
  g.output("hidden", x);
  if (c.state) x = gather(x, g.input("last_token", i32, {batch, 1}), {.axis = 1, .batch_dims = 1});
  const Node last = c.tied ? table : g.parameter("lm_head.weight", {words, width});
  g.output("logits", linear_with(x, last));
  if (c.every_layer) g.output("layers", layers.sides[0]);
  return g.finish();
}

}  // namespace treadle::models

#pragma once
// Longformer: BERT's layers with a window for each layer, and global tokens that are data (Beltagy et al. 2020).

#include <treadle/models/bert.hpp>

#include <vector>

namespace treadle::models {

struct LongformerConfig {
  BertConfig base{};
  std::vector<std::int64_t> windows;  ///< of each layer: keys around a query beside itself, half to each side
};

namespace detail {
inline constexpr Mask global_keys =
    mask_mod([](auto b, auto, auto, auto k) { return lookup<i32>("global_attention_mask", b, k) != 0; });
inline constexpr Mask global_queries =
    mask_mod([](auto b, auto, auto q, auto) { return lookup<i32>("global_attention_mask", b, q) != 0; });
inline constexpr Mask layer_window =
    mask_mod([](auto, auto, auto q, auto k) { return abs(q - k) <= lookup<i32>("half_windows", iteration(q)); });

/// Tokens attend to their window and to the global tokens; global tokens to all, by projections of their own. Rows of
/// the other kind see nothing and are 0, so the two add up.
constexpr Node longformer_attention(std::string_view leaf, Node x, Node half_windows, const BertConfig& c) {
  Builder& g = *x.builder;
  g.push_scope(leaf);
  const auto heads = [&](std::string_view name) { return split_heads(linear(name, x, {.width = c.width}), c.heads); };
  const Mask tokens = unpadded_keys & unpadded_queries;
  const Node q = heads("q"), k = heads("k"), v = heads("v");
  const Node local = attention(
      q, k, v,
      {.mask = (layer_window | global_keys) & tokens & !global_queries, .tables = {{"half_windows", half_windows}}});
  const Node q_global = heads("q_global"), k_global = heads("k_global"), v_global = heads("v_global");
  const Node global = attention(q_global, k_global, v_global, {.mask = global_queries & tokens});
  const Node out = linear("out", merge_heads(local + global), {.width = c.width});
  g.pop_scope();
  return out;
}
}  // namespace detail

/// Inputs of `bert`, all of them: attention_mask and position_ids too; and global_attention_mask [batch, seq], 1 for
/// global tokens. Outputs as bert's. Attention of padding is 0 before the output projection.
constexpr Graph longformer(const LongformerConfig& c) {
  Builder g;
  BertConfig base = c.base;
  base.padding = base.given_positions = true;
  g.input("attention_mask", i32, {batch, seq});
  g.input("global_attention_mask", i32, {batch, seq});
  const Node table =
      g.parameter("embeddings.word_embeddings.weight", {g.dim_number(base.vocabulary), g.dim_number(base.width)});
  const Node embedded = bert_embeddings(g, table, base);
  std::vector<double> halves;
  for (const std::int64_t w : c.windows) {
    const std::int64_t half = w / 2;
    halves.push_back(static_cast<double>(half));
  }
  const Node half_windows = constant(g, {base.layers}, halves, i32);
  const Node x = repeat("encoder.layer", base.layers, embedded, [&](Node y) {
    return bert_layer(y, detail::longformer_attention("attention", y, half_windows, base), base);
  });
  bert_heads(g, x, table, base);
  return g.finish();
}

}  // namespace treadle::models

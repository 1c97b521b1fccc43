#pragma once
// DETR behind its convolutional backbone: an encoder over features, and a decoder whose rows are object queries (Carion
// et al. 2020, §3.2 and appendix A.3).

#include <treadle/models/padding.hpp>

namespace treadle::models {

struct DetrConfig {
  std::int64_t width = 256, queries = 100, encoder_layers = 6, decoder_layers = 6, encoder_heads = 8, decoder_heads = 8,
               encoder_hidden = 2048, decoder_hidden = 2048;
  activation function = relu;
  std::int64_t classes = 91;     ///< without "no object", which is the last of the logits; 0: no heads
  bool padding = true;           ///< takes attention_mask [batch, tokens]
  AttentionVariant attention{};  ///< of the encoder
};

namespace detail {
/// Positions are added to what queries and keys are projected from, not to what values are.
constexpr Node detr_attention(std::string_view leaf, Node queries, Node keys, Node values, std::int64_t heads,
                              const std::optional<Mask>& mask, const AttentionVariant& variant = {}) {
  Builder& g = *queries.builder;
  if (!g.usable(queries)) return {&g, {}};
  const std::int64_t width = *g.graph().dims.constant(g.shape(queries).back());
  g.push_scope(leaf);
  const Node q = split_heads(linear("q", queries, {.width = width}), heads);
  const Node k = split_heads(linear("k", keys, {.width = width}), heads);
  const Node v = split_heads(linear("v", values, {.width = width}), heads);
  const Node y = attend(variant, {q, k, v, queries, keys}, {.mask = mask});
  const Node out = linear("out", merge_heads(y), {.width = width});
  g.pop_scope();
  return out;
}

constexpr void detr_heads(Builder& g, Node x, const DetrConfig& c) {
  g.output("logits", linear("class_labels_classifier", x, {.width = c.classes + 1}));
  Node box = relu(linear("bbox_predictor.layers.0", x, {.width = c.width}));
  box = relu(linear("bbox_predictor.layers.1", box, {.width = c.width}));
  g.output("pred_boxes", sigmoid(linear("bbox_predictor.layers.2", box, {.width = 4})));
}
}  // namespace detail

/// Inputs inputs_embeds f32 [batch, tokens, width], the backbone's features behind its projection, a row for each place
/// of the image, and spatial_position_embeddings of the same shape; with padding attention_mask i32 [batch, tokens].
/// Outputs `encoder_hidden` [batch, tokens, width], `hidden` [batch, queries, width], `logits` [batch, queries, classes
/// + 1] and `pred_boxes` [batch, queries, 4]: centre, width and height, as parts of the image.
constexpr Graph detr(const DetrConfig& c) {
  Builder g;
  const DimSpec tokens = dim("tokens");
  const Node features = g.input("inputs_embeds", f32, {batch, tokens, c.width}),
             places = g.input("spatial_position_embeddings", f32, {batch, tokens, c.width});
  if (c.padding) g.input("attention_mask", i32, {batch, tokens});
  const std::optional<Mask> keys = with_padding(std::nullopt, c.padding);
  const Node memory = repeat("encoder.layers", c.encoder_layers, features, [&](Node x) {
    const Node at = x + places;
    x = layer_norm("self_attn_layer_norm",
                   x + detail::detr_attention("self_attn", at, at, x, c.encoder_heads, keys, c.attention));
    return layer_norm("final_layer_norm", x + ffn("mlp", x, {.hidden = c.encoder_hidden, .activation = c.function}));
  });
  g.output("encoder_hidden", memory);

  const Node objects =
      g.parameter("query_position_embeddings.weight", {g.dim_number(c.queries), g.dim_number(c.width)});
  const Node memory_at = memory + places;
  Node x = full(g, {batch, c.queries, c.width}, 0);
  x = repeat("decoder.layers", c.decoder_layers, x, [&](Node y) {
    const Node at = y + objects;
    y = layer_norm("self_attn_layer_norm",
                   y + detail::detr_attention("self_attn", at, at, y, c.decoder_heads, std::nullopt));
    const Node seen = detail::detr_attention("encoder_attn", y + objects, memory_at, memory, c.decoder_heads, keys);
    y = layer_norm("encoder_attn_layer_norm", y + seen);
    return layer_norm("final_layer_norm", y + ffn("mlp", y, {.hidden = c.decoder_hidden, .activation = c.function}));
  });
  x = layer_norm("decoder.layernorm", x);
  g.output("hidden", x);
  if (c.classes > 0) detail::detr_heads(g, x, c);
  return g.finish();
}

}  // namespace treadle::models

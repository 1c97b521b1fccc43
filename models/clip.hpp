#pragma once
// CLIP: a text tower and a vision tower that meet in one space (Radford et al. 2021).

#include <treadle/models/padding.hpp>
#include <treadle/models/vit.hpp>

namespace treadle::models {

struct ClipTower {
  std::int64_t width = 512, layers = 12, heads = 8, hidden = 2048;
  activation function = quick_gelu;
  double eps = 1e-5;
};

struct ClipConfig {
  std::int64_t vocabulary = 49408, positions = 77, image = 224, patch = 32, channels = 3, projection = 512;
  ClipTower text{}, vision{768, 12, 12, 3072};
  /// The token whose first place in a text the text's vector is taken from; −1: the largest id of each text, as the
  /// published code has it where eos_token_id is 2.
  std::int64_t end = 49407;
  bool padding = true;           ///< takes attention_mask [batch, seq]
  bool given_positions = false;  ///< takes position_ids [batch, seq]
  AttentionVariant attention{};  ///< of the vision tower
};

namespace detail {
/// The layers of a tower: pre-norm.
constexpr Node clip_layers(Node x, const ClipTower& t, const std::optional<Mask>& mask,
                           const AttentionVariant& variant) {
  return repeat("encoder.layers", t.layers, x, [&](Node y) {
    const Node z = y + self_attention("self_attn", layer_norm("layer_norm1", y, {.eps = t.eps}),
                                      {.heads = t.heads, .mask = mask, .variant = variant});
    return z + ffn("mlp", layer_norm("layer_norm2", z, {.eps = t.eps}), {.hidden = t.hidden, .activation = t.function});
  });
}

/// The row of x [batch, seq, width] at the first token of each text that is `end`, or the largest.
constexpr Node clip_end_of_text(Builder& g, Node ids, Node x, std::int64_t end) {
  const Node last = slice(argsort(ids), 1, seq - 1, 1);
  const Node largest = gather(ids, last, {.axis = 1, .batch_dims = 1});
  const Mask is_largest = mask_mod(
      [](auto b, auto, auto, auto k) { return lookup<i32>("input_ids", b, k) == lookup<i32>("largest", b, 0); });
  const Mask is_end = mask_mod([&](auto b, auto, auto, auto k) { return lookup<i32>("input_ids", b, k) == end; });
  const ScoreLengths row{g.dim_number(1), g.intern(seq)};
  const Node ends = end < 0 ? mask_node(g, is_largest, row, {{"largest", largest}}) : mask_node(g, is_end, row);
  const Node first = argmax(select(ends, full(g, {batch, 1, 1, seq}, 1), 0));
  return gather(x, reshape(first, {batch}), {.axis = 1, .batch_dims = 1});
}

constexpr Node clip_text(Builder& g, const ClipConfig& c) {
  const Node ids = g.input("input_ids", i32, {batch, seq});
  if (c.padding) g.input("attention_mask", i32, {batch, seq});
  g.push_scope("text_model");
  Node x = embedding("embeddings.token_embedding", ids, {.vocabulary = c.vocabulary, .width = c.text.width});
  if (c.given_positions)
    x = x + embedding("embeddings.position_embedding", g.input("position_ids", i32, {batch, seq}),
                      {.vocabulary = c.positions, .width = c.text.width});
  else
    x = x + learned_positions("embeddings.position_embedding", {.length = c.positions});
  x = clip_layers(x, c.text, with_padding(causal, c.padding), {});
  x = layer_norm("final_layer_norm", x, {.eps = c.text.eps});
  g.pop_scope();
  g.output("text_hidden", x);
  return linear("text_projection", clip_end_of_text(g, ids, x, c.end), {.width = c.projection, .bias = false});
}

constexpr Node clip_images(Builder& g, const ClipConfig& c) {
  const DimSpec images = dim("images");
  const Node pixels = g.input("pixel_values", f32, {images, c.channels, c.image, c.image});
  const std::int64_t side = c.image / c.patch, width = c.vision.width;
  g.push_scope("vision_model");
  const Node patches = linear("embeddings.patch_embedding", patch_rows(pixels, c.channels, c.image, c.patch, images),
                              {.width = width, .bias = false});
  const Node learned = g.parameter("embeddings.class_embedding", {g.dim_number(width)});
  const Node class_token = learned + full(g, {images, 1, 1}, 0);
  Node x = concatenate({class_token, patches}, 1) +
           learned_positions("embeddings.position_embedding", {.length = side * side + 1});
  x = layer_norm("pre_layrnorm", x, {.eps = c.vision.eps});
  x = clip_layers(x, c.vision, std::nullopt, c.attention);
  const Node pooled = layer_norm("post_layernorm", first_token(x), {.eps = c.vision.eps});
  g.pop_scope();
  g.output("image_hidden", x);
  return linear("visual_projection", pooled, {.width = c.projection, .bias = false});
}
}  // namespace detail

/// Inputs input_ids and, as configured, attention_mask and position_ids, i32 [batch, seq]; pixel_values f32 [images,
/// channels, image, image]. Outputs `text_embeds` [batch, projection] and `image_embeds` [images, projection], of
/// length 1; `logits_per_text` [batch, images], their products by exp(logit_scale), and `logits_per_image`, its
/// transpose; `text_hidden` [batch, seq, width] after the last norm, `image_hidden` [images, patches + 1, width].
constexpr Graph clip(const ClipConfig& c) {
  Builder g;
  const Node text = l2_norm(detail::clip_text(g, c), 0);
  const Node images = l2_norm(detail::clip_images(g, c), 0);
  g.output("text_embeds", text);
  g.output("image_embeds", images);
  const Node factor = exp(g.parameter("logit_scale", {}));
  const Node logits = matmul(text, transpose(images)) * factor;
  g.output("logits_per_text", logits);
  g.output("logits_per_image", transpose(logits));
  return g.finish();
}

}  // namespace treadle::models

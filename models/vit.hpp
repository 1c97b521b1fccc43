#pragma once
// Vision Transformer: patches of an image as tokens, a class token before them (Dosovitskiy et al. 2021).

#include <treadle/ops/rules.hpp>
#include <treadle/ops/variant.hpp>

namespace treadle::models {

struct VitConfig {
  std::int64_t image = 224, patch = 16, channels = 3, width = 768, layers = 12, heads = 12, hidden = 3072;
  activation function = gelu;
  double eps = 1e-12;
  bool qkv_bias = true;      ///< of queries, keys and values; the output has one in any case
  bool pooler = false;       ///< output `pooled` [batch, width]: tanh of a projection of the class token
  std::int64_t classes = 0;  ///< output `logits` [batch, classes]; 0: none
  AttentionVariant attention{};
};

/// Pixels [images, channels, image, image] as rows of patches [images, patches, channels · patch²], each in the order
/// of a convolution's weight.
constexpr Node patch_rows(Node pixels, std::int64_t channels, std::int64_t image, std::int64_t patch,
                          const DimSpec& images = batch) {
  const std::int64_t side = image / patch;
  const Node blocks = reshape(pixels, {images, channels, side, patch, side, patch});
  return reshape(transpose(blocks, {0, 2, 4, 1, 3, 5}), {images, side * side, channels * patch * patch});
}

constexpr Node vit_attention(Node x, const VitConfig& c) {
  const auto heads = [&](std::string_view leaf) {
    return split_heads(linear(leaf, x, {.width = c.width, .bias = c.qkv_bias}), c.heads);
  };
  const Node q = heads("attention.q"), k = heads("attention.k"), v = heads("attention.v");
  return linear("attention.out", merge_heads(attend(c.attention, {q, k, v, x, x})), {.width = c.width});
}

/// Input pixel_values f32 [batch, channels, image, image]. Outputs `hidden` [batch, patches + 1, width] before the last
/// norm, `normed` after it, and those that are asked for.
constexpr Graph vit(const VitConfig& c) {
  Builder g;
  const Node pixels = g.input("pixel_values", f32, {batch, c.channels, c.image, c.image});
  const std::int64_t side = c.image / c.patch, tokens = side * side + 1;
  const Dim one = g.dim_number(1), width = g.dim_number(c.width);
  const Node patches = linear("embeddings.patch_embeddings.projection",
                              patch_rows(pixels, c.channels, c.image, c.patch), {.width = c.width});
  const Node class_token = g.parameter("embeddings.cls_token", {one, one, width}) + full(g, {batch, 1, 1}, 0);
  const Node positions = g.parameter("embeddings.position_embeddings", {one, g.dim_number(tokens), width});
  Node x = concatenate({class_token, patches}, 1) + positions;
  x = repeat("encoder.layer", c.layers, x, [&](Node y) {
    const Node z = y + vit_attention(layer_norm("layernorm_before", y, {.eps = c.eps}), c);
    return z +
           ffn("mlp", layer_norm("layernorm_after", z, {.eps = c.eps}), {.hidden = c.hidden, .activation = c.function});
  });
  g.output("hidden", x);
  const Node normed = layer_norm("layernorm", x, {.eps = c.eps});
  g.output("normed", normed);
  const Node first = first_token(normed);
  if (c.classes > 0) g.output("logits", linear("classifier", first, {.width = c.classes}));
  if (c.pooler) g.output("pooled", tanh(linear("pooler.dense", first, {.width = c.width})));
  return g.finish();
}

}  // namespace treadle::models

#pragma once
// T5: an encoder and a decoder with relative biases, unscaled scores and RMS norms (Raffel et al. 2020).

#include <treadle/models/padding.hpp>

namespace treadle::models {

struct T5Config {
  std::int64_t vocabulary = 32128, width = 512, encoder_layers = 6, decoder_layers = 6, heads = 8, head_dim = 64,
               hidden = 2048, buckets = 32, max_distance = 128;
  activation function = relu;
  bool gated = false;  ///< function(x W0) · (x W1): T5 1.1
  double eps = 1e-6;
  bool tied = true;              ///< the last matrix is the table of embeddings …
  bool scaled_output = true;     ///< … and the decoder's output is multiplied by 1/√width before it
  bool padding = true;           ///< takes attention_mask [batch, seq] of the encoder's tokens
  AttentionVariant attention{};  ///< of the encoder
};

namespace detail {
constexpr Node t5_feed_forward(std::string_view leaf, Node x, const T5Config& c) {
  if (c.gated) return gated_ffn(leaf, x, {.hidden = c.hidden, .activation = c.function});
  return ffn(leaf, x, {.hidden = c.hidden, .activation = c.function, .bias = false});
}
}  // namespace detail

/// Inputs input_ids [batch, seq], decoder_input_ids [batch, target] and, with padding, attention_mask [batch, seq].
/// Outputs `encoder_hidden` [batch, seq, width] and `decoder_hidden` [batch, target, width], after their norms, and
/// `logits` [batch, target, vocabulary].
constexpr Graph t5(const T5Config& c) {
  Builder g;
  const DimSpec target = dim("target");
  const Node source_ids = g.input("input_ids", i32, {batch, seq}),
             target_ids = g.input("decoder_input_ids", i32, {batch, target});
  if (c.padding) g.input("attention_mask", i32, {batch, seq});
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("shared.weight", {words, width});
  const std::optional<Mask> keys = with_padding(std::nullopt, c.padding);
  const SelfAttentionOptions plain{.heads = c.heads, .head_dim = c.head_dim, .bias = false, .scale = 1};

  // Each stack shares the bias of its first layer.
  const Node encoder_bias =
      t5_bias("encoder.block.0.layer.0.SelfAttention.relative_attention_bias", g, seq, seq,
              {.heads = c.heads, .buckets = c.buckets, .max_distance = c.max_distance, .bidirectional = true});
  Node memory = repeat("encoder.block", c.encoder_layers, embedding_with(table, source_ids), [&](Node x) {
    SelfAttentionOptions o = plain;
    o.mask = keys;
    o.score_bias = encoder_bias;
    o.variant = c.attention;
    const Node y = x + self_attention("layer.0.SelfAttention", rms_norm("layer.0.layer_norm", x, {.eps = c.eps}), o);
    return y + detail::t5_feed_forward("layer.1.DenseReluDense", rms_norm("layer.1.layer_norm", y, {.eps = c.eps}), c);
  });
  memory = rms_norm("encoder.final_layer_norm", memory, {.eps = c.eps});
  g.output("encoder_hidden", memory);

  const Node decoder_bias =
      t5_bias("decoder.block.0.layer.0.SelfAttention.relative_attention_bias", g, target, target,
              {.heads = c.heads, .buckets = c.buckets, .max_distance = c.max_distance, .bidirectional = false});
  Node x = repeat("decoder.block", c.decoder_layers, embedding_with(table, target_ids), [&](Node y) {
    SelfAttentionOptions self = plain, cross = plain;
    self.mask = causal;
    self.score_bias = decoder_bias;
    cross.mask = keys;
    y = y + self_attention("layer.0.SelfAttention", rms_norm("layer.0.layer_norm", y, {.eps = c.eps}), self);
    y = y +
        cross_attention("layer.1.EncDecAttention", rms_norm("layer.1.layer_norm", y, {.eps = c.eps}), memory, cross);
    return y + detail::t5_feed_forward("layer.2.DenseReluDense", rms_norm("layer.2.layer_norm", y, {.eps = c.eps}), c);
  });
  x = rms_norm("decoder.final_layer_norm", x, {.eps = c.eps});
  g.output("decoder_hidden", x);
  if (c.scaled_output) x = scale(x, 1 / square_root(static_cast<double>(c.width)));
  const Node last = c.tied ? table : g.parameter("lm_head.weight", {words, width});
  g.output("logits", linear_with(x, last));
  return g.finish();
}

}  // namespace treadle::models

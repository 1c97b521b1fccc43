#pragma once
// T5: an encoder and a decoder with relative biases, unscaled scores and RMS norms (Raffel et al. 2020).

#include <treadle/models/decoder.hpp>

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

namespace detail {
/// From ids to what the decoder sees, [batch, seq, width].
constexpr Node t5_encoder_stack(Builder& g, Node table, const T5Config& c) {
  const Node ids = g.input("input_ids", i32, {batch, seq});
  if (c.padding) g.input("attention_mask", i32, {batch, seq});
  SelfAttentionOptions o{.heads = c.heads, .head_dim = c.head_dim, .bias = false, .scale = 1};
  o.mask = with_padding(std::nullopt, c.padding);
  o.score_bias = t5_bias("encoder.block.0.layer.0.SelfAttention.relative_attention_bias", g, seq, seq,
                         {.heads = c.heads, .buckets = c.buckets, .max_distance = c.max_distance});
  o.variant = c.attention;
  // Each stack shares the bias of its first layer.
  const Node x = repeat("encoder.block", c.encoder_layers, embedding_with(table, ids), [&](Node y) {
    y = y + self_attention("layer.0.SelfAttention", rms_norm("layer.0.layer_norm", y, {.eps = c.eps}), o);
    return y + t5_feed_forward("layer.1.DenseReluDense", rms_norm("layer.1.layer_norm", y, {.eps = c.eps}), c);
  });
  return rms_norm("encoder.final_layer_norm", x, {.eps = c.eps});
}

constexpr Node t5_table(Builder& g, const T5Config& c) {
  return g.parameter("shared.weight", {g.dim_number(c.vocabulary), g.dim_number(c.width)});
}

/// `self` and `cross` are the layers' two kinds of attention, from x to what is added to it.
template <class Self, class Cross>
constexpr Node t5_decoder_stack(Builder& g, Node x, const T5Config& c, Self self, Cross cross) {
  x = repeat("decoder.block", c.decoder_layers, x, [&](Iteration& it, Node y) {
    y = y + self(it, rms_norm("layer.0.layer_norm", y, {.eps = c.eps}));
    y = y + cross(it, rms_norm("layer.1.layer_norm", y, {.eps = c.eps}));
    return y + t5_feed_forward("layer.2.DenseReluDense", rms_norm("layer.2.layer_norm", y, {.eps = c.eps}), c);
  });
  x = rms_norm("decoder.final_layer_norm", x, {.eps = c.eps});
  g.output("decoder_hidden", x);
  return x;
}

constexpr void t5_logits(Builder& g, Node table, Node x, const T5Config& c) {
  if (c.scaled_output) x = scale(x, 1 / square_root(static_cast<double>(c.width)));
  const Node last = c.tied ? table : g.parameter("lm_head.weight", {g.dim_number(c.vocabulary), g.dim_number(c.width)});
  g.output("logits", linear_with(x, last));
}

/// The bias of a query at position q and a key at position k, from a row of one for every distance.
inline constexpr scalar::Function t5_bias_by_distance = score_mod([](auto score, auto, auto h, auto q, auto k) {
  return score + lookup<f32>("distance_bias", h, k - q + length(k) - 1);
});
}  // namespace detail

/// Inputs input_ids [batch, seq], decoder_input_ids [batch, target] and, with padding, attention_mask [batch, seq].
/// Outputs `encoder_hidden` [batch, seq, width] and `decoder_hidden` [batch, target, width], after their norms, and
/// `logits` [batch, target, vocabulary].
constexpr Graph t5(const T5Config& c) {
  Builder g;
  const DimSpec target = dim("target");
  const Node table = detail::t5_table(g, c), memory = detail::t5_encoder_stack(g, table, c);
  g.output("encoder_hidden", memory);
  SelfAttentionOptions self{.heads = c.heads, .head_dim = c.head_dim, .bias = false, .scale = 1}, cross = self;
  self.mask = causal;
  self.score_bias =
      t5_bias("decoder.block.0.layer.0.SelfAttention.relative_attention_bias", g, target, target,
              {.heads = c.heads, .buckets = c.buckets, .max_distance = c.max_distance, .bidirectional = false});
  cross.mask = with_padding(std::nullopt, c.padding);
  const Node ids = g.input("decoder_input_ids", i32, {batch, target});
  const Node x = detail::t5_decoder_stack(
      g, embedding_with(table, ids), c,
      [&](Iteration&, Node y) { return self_attention("layer.0.SelfAttention", y, self); },
      [&](Iteration&, Node y) { return cross_attention("layer.1.EncDecAttention", y, memory, cross); });
  detail::t5_logits(g, table, x, c);
  return g.finish();
}

/// For generation, once a text: inputs input_ids and attention_mask [batch, seq], outputs `encoder_hidden`, and cross_k
/// and cross_v for t5_decoder (output_cross_attention in decoder.hpp).
constexpr Graph t5_encoder(T5Config c) {
  Builder g;
  c.padding = true;
  const Node table = detail::t5_table(g, c), memory = detail::t5_encoder_stack(g, table, c);
  g.output("encoder_hidden", memory);
  output_cross_attention("decoder.block", c.decoder_layers, "layer.1.EncDecAttention", memory, c.heads, c.head_dim,
                         false);
  return g.finish();
}

/// For generation, step by step: inputs of a decoder with a cache (decoder.hpp) and attention_mask [batch, source] of
/// the encoder's tokens. Outputs `decoder_hidden` [batch, seq, width] and `logits` [batch, 1, vocabulary].
constexpr Graph t5_decoder(const T5Config& c) {
  Builder g;
  const Decoder d(g, {.cache = true});
  g.input("attention_mask", i32, {batch, dim("source")});
  const Node table = detail::t5_table(g, c);
  const DimSpec capacity = dim("capacity");
  // [1, heads, 1, capacity], the last entry for a key at the query's own position.
  const Node bias =
      t5_bias("decoder.block.0.layer.0.SelfAttention.relative_attention_bias", g, 1, capacity,
              {.heads = c.heads, .buckets = c.buckets, .max_distance = c.max_distance, .bidirectional = false});
  DecoderAttention self{.heads = c.heads, .head_dim = c.head_dim, .qkv_bias = false, .out_bias = false}, cross = self;
  self.scale = cross.scale = 1;
  self.mask = causal;
  self.variant.score = detail::t5_bias_by_distance;
  self.tables = {{"distance_bias", reshape(bias, {c.heads, capacity})}};
  cross.mask = unpadded_keys;
  const Node x = detail::t5_decoder_stack(
      g, embedding_with(table, d.tokens), c,
      [&](Iteration& it, Node y) { return d.attention(it, "layer.0.SelfAttention", y, self); },
      [&](Iteration& it, Node y) { return d.cross_attention(it, "layer.1.EncDecAttention", y, cross); });
  detail::t5_logits(g, table, d.wanted(x), c);
  return g.finish();
}

}  // namespace treadle::models

#pragma once
// The Transformer of 2017: an encoder, a decoder, or both (Vaswani et al. 2017). With sines before cosines it is
// Marian's, whose published translation models descend from it (Junczys-Dowmunt et al. 2018).

#include <treadle/models/decoder.hpp>

namespace treadle::models {

struct TransformerConfig {
  std::int64_t vocabulary = 37000, target_vocabulary = 0;  ///< 0: sources and targets share their table
  std::int64_t width = 512, heads = 8, hidden = 2048;
  std::int64_t encoder_layers = 6, decoder_layers = 6;  ///< 0: the other half alone
  bool learned = false;                                 ///< positions: a table of parameters; else sinusoids
  std::int64_t positions = 5000;                        ///< its rows; sinusoids end only where position_ids are given
  bool sines_first = false;                             ///< all sines before all cosines; else in turns (§3.5)
  activation function = relu;
  double eps = 1e-5;
  bool pre_norm = false;          ///< x + f(LayerNorm(x)) instead of LayerNorm(x + f(x))
  bool final_norm = false;        ///< one more behind each half: torch.nn.Transformer has them, the paper does not
  bool scaled_embeddings = true;  ///< by √width (§3.4)
  bool head = true;               ///< output `logits`
  bool tied = true;               ///< its matrix is the (targets') table: with one table, three in one
  bool head_bias = false;         ///< of the head
  DecoderInputs inputs{};         ///< padding: attention_mask of the source's tokens; the rest for a decoder alone
  AttentionVariant attention{};   ///< of the encoder, or of a decoder alone
};

/// Sinusoids of positions [length, width].
constexpr Node transformer_sinusoids(Builder& g, DimSpec length, const TransformerConfig& c) {
  const Node turns = sinusoidal_positions(g, length, c.width);
  if (!c.sines_first) return turns;
  return reshape(transpose(reshape(turns, {length, c.width / 2, 2}), {0, 2, 1}), {length, c.width});
}

/// Tokens [batch, length]; position_ids without builder: they are counted.
struct TransformerTokens {
  Node ids{};
  DimSpec length = seq;
  Node position_ids{};
};
constexpr Node transformer_embedding(Node table, const TransformerTokens& t, std::string_view positions,
                                     const TransformerConfig& c) {
  Node x = embedding_with(table, t.ids);
  if (c.scaled_embeddings) x = scale(x, square_root(static_cast<double>(c.width)));
  if (t.position_ids.builder == nullptr) {
    if (c.learned) return x + learned_positions(positions, {.length = c.positions});
    return x + transformer_sinusoids(*x.builder, t.length, c);
  }
  if (c.learned) return x + embedding(positions, t.position_ids, {.vocabulary = c.positions, .width = c.width});
  return x + embedding_with(transformer_sinusoids(*x.builder, c.positions, c), t.position_ids);
}

/// Layers of sub-layers `attention(iteration, x)` … and a feed-forward network, each in its residual connection.
template <class... Attention>
constexpr Node transformer_layers(std::string_view stack, std::int64_t times, Node x, const TransformerConfig& c,
                                  Attention... attention) {
  x = repeat(Text(stack).append(".layers").view(), times, x, [&](Iteration& it, Node y) {
    std::int64_t number = 0;
    const auto residual = [&](auto f) {
      const Text norm = Text("norm").append(++number);
      if (c.pre_norm) return y + f(it, layer_norm(norm.view(), y, {.eps = c.eps}));
      return layer_norm(norm.view(), y + f(it, y), {.eps = c.eps});
    };
    ((y = residual(attention)), ...);
    return residual([&](Iteration&, Node z) { return ffn("ffn", z, {.hidden = c.hidden, .activation = c.function}); });
  });
  return c.final_norm ? layer_norm(Text(stack).append(".norm").view(), x, {.eps = c.eps}) : x;
}

/// The output `logits`, if there is a head.
constexpr void transformer_head(Node x, Node table, const TransformerConfig& c) {
  Builder& g = *x.builder;
  const std::int64_t words = c.target_vocabulary == 0 ? c.vocabulary : c.target_vocabulary;
  if (!c.head) return;
  if (!c.tied) return g.output("logits", linear("generator", x, {.width = words, .bias = c.head_bias}));
  const Node scores = linear_with(x, table);
  g.output("logits", c.head_bias ? scores + g.parameter("generator.bias", {g.dim_number(words)}) : scores);
}

/// One half alone: input_ids [batch, seq] and what `inputs` asks for, to `hidden` and `logits`. A decoder that attends
/// to no source is an encoder whose attention is causal, with a cache if asked (decoder.hpp).
constexpr Graph transformer_half(const TransformerConfig& c) {
  Builder g;
  const bool causally = c.encoder_layers == 0;
  const Decoder d(g, c.inputs);
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("embedding.weight", {words, width});
  Node x = transformer_embedding(table, {d.tokens, seq, d.positions}, "positions", c);
  x = transformer_layers(causally ? "decoder" : "encoder", causally ? c.decoder_layers : c.encoder_layers, x, c,
                         [&](Iteration& it, Node y) {
                           DecoderAttention a{.heads = c.heads, .variant = c.attention};
                           if (causally) a.mask = causal;
                           return d.attention(it, "self_attn", y, a);
                         });
  g.output("hidden", x);
  transformer_head(d.wanted(x), table, c);
  return g.finish();
}

/// The table of sources or targets, which may be one.
constexpr Node transformer_table(Builder& g, bool targets, const TransformerConfig& c) {
  const bool shared = c.target_vocabulary == 0;
  return g.parameter(shared    ? "embedding.weight"
                     : targets ? "tgt_embedding.weight"
                               : "src_embedding.weight",
                     {g.dim_number(targets && !shared ? c.target_vocabulary : c.vocabulary), g.dim_number(c.width)});
}

/// The encoder: inputs input_ids [batch, seq] and, with padding, attention_mask; output `encoder_hidden`.
constexpr Node transformer_memory(Builder& g, Node table, const TransformerConfig& c) {
  const Node ids = g.input("input_ids", i32, {batch, seq});
  if (c.inputs.padding) g.input("attention_mask", i32, {batch, seq});
  const std::optional<Mask> keys = with_padding(std::nullopt, c.inputs.padding);
  Node x = transformer_embedding(table, {ids}, "src_positions", c);
  x = transformer_layers("encoder", c.encoder_layers, x, c, [&](Iteration&, Node y) {
    return self_attention("self_attn", y, {.heads = c.heads, .mask = keys, .variant = c.attention});
  });
  g.output("encoder_hidden", x);
  return x;
}

/// Inputs input_ids [batch, seq], decoder_input_ids [batch, target] and, with padding, attention_mask [batch, seq].
/// Outputs `encoder_hidden` [batch, seq, width], `decoder_hidden` [batch, target, width] and `logits` [batch, target,
/// target vocabulary]. Where one half has no layers: transformer_half.
constexpr Graph transformer(const TransformerConfig& c) {
  if (c.encoder_layers == 0 || c.decoder_layers == 0) return transformer_half(c);
  Builder g;
  const DimSpec target = dim("target");
  const Node sources = transformer_table(g, false, c), memory = transformer_memory(g, sources, c);
  const Node targets = c.target_vocabulary == 0 ? sources : transformer_table(g, true, c);
  const Node ids = g.input("decoder_input_ids", i32, {batch, target});
  const auto to_targets = [&](Iteration&, Node y) {
    return self_attention("self_attn", y, {.heads = c.heads, .mask = causal});
  };
  const auto to_sources = [&](Iteration&, Node y) {
    return cross_attention("multihead_attn", y, memory,
                           {.heads = c.heads, .mask = with_padding(std::nullopt, c.inputs.padding)});
  };
  Node x = transformer_embedding(targets, {ids, target}, "tgt_positions", c);
  x = transformer_layers("decoder", c.decoder_layers, x, c, to_targets, to_sources);
  g.output("decoder_hidden", x);
  transformer_head(x, targets, c);
  return g.finish();
}

/// For generation, once a text: inputs input_ids and attention_mask [batch, seq], outputs `encoder_hidden`, and cross_k
/// and cross_v for transformer_decoder (output_cross_attention in decoder.hpp).
constexpr Graph transformer_encoder(TransformerConfig c) {
  Builder g;
  c.inputs.padding = true;
  const Node table = transformer_table(g, false, c), memory = transformer_memory(g, table, c);
  output_cross_attention("decoder.layers", c.decoder_layers, "multihead_attn", memory, c.heads, c.width / c.heads,
                         true);
  return g.finish();
}

/// For generation, step by step: inputs of a decoder with a cache (decoder.hpp) and attention_mask [batch, source] of
/// the encoder's tokens. Outputs `decoder_hidden` [batch, seq, width] and `logits` [batch, 1, target vocabulary].
constexpr Graph transformer_decoder(const TransformerConfig& c) {
  Builder g;
  const Decoder d(g, {.cache = true});
  g.input("attention_mask", i32, {batch, dim("source")});
  const Node table = transformer_table(g, true, c);
  const auto to_targets = [&](Iteration& it, Node y) {
    return d.attention(it, "self_attn", y, {.heads = c.heads, .mask = causal});
  };
  const auto to_sources = [&](Iteration& it, Node y) {
    return d.cross_attention(it, "multihead_attn", y, {.heads = c.heads, .mask = unpadded_keys});
  };
  Node x = transformer_embedding(table, {d.tokens, seq, d.positions}, "tgt_positions", c);
  x = transformer_layers("decoder", c.decoder_layers, x, c, to_targets, to_sources);
  g.output("decoder_hidden", x);
  transformer_head(d.wanted(x), table, c);
  return g.finish();
}

}  // namespace treadle::models

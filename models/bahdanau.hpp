#pragma once
// The Transformer's decoder with the alignment model of Bahdanau, Cho and Bengio (2015) in the place of its
// cross-attention: the historical reference.

#include <treadle/models/transformer.hpp>
#include <treadle/ops/score_attention.hpp>

namespace treadle::models {

struct BahdanauConfig {
  TransformerConfig decoder{};     ///< tables, positions, layers, norms and head; its encoder is not there
  std::int64_t annotations = 512;  ///< width of the encoder's states
  std::int64_t alignment = 512;    ///< width of the alignment model's hidden layer
};

/// Inputs encoder_states f32 [batch, seq, annotations], decoder_input_ids [batch, target] and, with padding,
/// attention_mask [batch, seq]. Outputs `decoder_hidden` [batch, target, width] and `logits`.
///
/// Of the paper: e_ij = v · tanh(W s_i + U h_j), its softmax over j, the context Σ_j α_ij h_j of the encoder's states
/// as they are, one head (§3.1, A.1.2), and a matrix C for it. Not of the paper: s_i is the state of a layer of this
/// decoder, at all positions at once, instead of that of a GRU one step before; every layer has an alignment model; C's
/// result is added to the residual instead of entering the GRU's gates; the maxout layer before the words is left out.
constexpr Graph bahdanau(const BahdanauConfig& o) {
  const TransformerConfig& c = o.decoder;
  Builder g;
  const DimSpec target = dim("target");
  const Node states = g.input("encoder_states", f32, {batch, seq, o.annotations}),
             ids = g.input("decoder_input_ids", i32, {batch, target});
  if (c.inputs.padding) g.input("attention_mask", i32, {batch, seq});
  const std::optional<Mask> keys = with_padding(std::nullopt, c.inputs.padding);
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("embedding.weight", {words, width});
  Node x = transformer_embedding(table, {ids, target}, "positions", c);
  const auto to_targets = [&](Iteration&, Node y) {
    return self_attention("self_attn", y, {.heads = c.heads, .mask = causal, .variant = c.attention});
  };
  const auto to_sources = [&](Iteration&, Node y) {
    const Node context = additive_attention("alignment", y, states, states, {.width = o.alignment, .mask = keys});
    return linear("context", context, {.width = c.width, .bias = false});
  };
  x = transformer_layers("decoder", c.decoder_layers, x, c, to_targets, to_sources);
  g.output("decoder_hidden", x);
  transformer_head(x, table, c);
  return g.finish();
}

}  // namespace treadle::models

#pragma once
// Llama and its relatives: RMS norms, rotary positions, grouped heads, SwiGLU (Touvron et al. 2023); with a sliding
// window Mistral (Jiang et al. 2023), with biases of the projections Qwen2 (Yang et al. 2024).

#include <treadle/models/decoder.hpp>

namespace treadle::models {

struct LlamaConfig {
  std::int64_t vocabulary = 32000, width = 4096, layers = 32, heads = 32, kv_heads = 32, head_dim = 128, hidden = 11008;
  activation function = silu;
  double eps = 1e-6, rope_base = 10000;
  RopeScaling scaling{};
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  std::int64_t window = 0;        ///< keys that a query sees, itself among them; 0: all up to it
  std::int64_t dense_layers = 0;  ///< the first so many layers have no window (Qwen2's max_window_layers)
  bool tied = false;              ///< the last matrix is the table of embeddings
  DecoderInputs inputs{};
  AttentionVariant attention{};
  bool every_layer = false;  ///< output `layers` [layers, batch, seq, width]: what each layer hands on
};

/// Inputs as `inputs` asks (decoder.hpp). Outputs `hidden` [batch, seq, width] after the last norm, and `logits`
/// [batch, seq, vocabulary] (with a cache those of one token, [batch, 1, vocabulary]).
constexpr Graph llama(const LlamaConfig& c) {
  Builder g;
  const Decoder d(g, c.inputs, c.dense_layers == 0 ? c.window : 0);
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("embed_tokens.weight", {words, width});
  std::optional<Mask> mask = causal;
  if (c.window > 0) {
    const std::int64_t dense = c.dense_layers, back = c.window - 1;
    mask =
        dense == 0
            ? causal & window(back, 0)
            : causal & (window(back, 0) | mask_mod([dense](auto, auto, auto q, auto) { return iteration(q) < dense; }));
  }
  RopeOptions rotary{.base = c.rope_base, .scaling = c.scaling};
  if (d.positions.builder != nullptr) rotary.positions = d.positions;
  const RepeatResult layers = repeat("layers", c.layers, embedding_with(table, d.tokens), [&](Iteration& it, Node y) {
    const Node z = y + d.attention(it, "self_attn", rms_norm("input_layernorm", y, {.eps = c.eps}),
                                   {.heads = c.heads,
                                    .kv_heads = c.kv_heads,
                                    .head_dim = c.head_dim,
                                    .qkv_bias = c.qkv_bias,
                                    .out_bias = c.out_bias,
                                    .mask = mask,
                                    .rope = rotary,
                                    .variant = c.attention});
    const Node out = z + gated_ffn("mlp", rms_norm("post_attention_layernorm", z, {.eps = c.eps}),
                                   {.hidden = c.hidden, .activation = c.function, .bias = c.mlp_bias});
    if (c.every_layer) it.side("layers", out);
    return out;
  });
  const Node hidden = rms_norm("norm", layers.carried[0], {.eps = c.eps});
  g.output("hidden", hidden);
  const Node last = c.tied ? table : g.parameter("lm_head.weight", {words, width});
  g.output("logits", linear_with(d.wanted(hidden), last));
  if (c.every_layer) g.output("layers", layers.sides[0]);
  return g.finish();
}

}  // namespace treadle::models

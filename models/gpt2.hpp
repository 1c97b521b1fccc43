#pragma once
// GPT-2: a pre-norm decoder with learned positions (Radford et al. 2019).

#include <treadle/models/decoder.hpp>

namespace treadle::models {

struct Gpt2Config {
  std::int64_t vocabulary = 50257, width = 768, layers = 12, heads = 12, hidden = 3072, positions = 1024;
  activation function = gelu_tanh;
  double eps = 1e-5;
  bool scaled = true;  ///< scores by 1/√head_dim
  bool tied = true;    ///< the last matrix is the table of embeddings
  DecoderInputs inputs{};
  AttentionVariant attention{};
  bool every_layer = false;  ///< output `layers` [layers, batch, seq, width]: what each layer hands on
};

/// Inputs as `inputs` asks (decoder.hpp). Outputs `hidden` [batch, seq, width] after the last norm, and `logits`
/// [batch, seq, vocabulary] (with a cache those of one token, [batch, 1, vocabulary]).
constexpr Graph gpt2(const Gpt2Config& c) {
  Builder g;
  const Decoder d(g, c.inputs);
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("wte.weight", {words, width});
  const Node tokens = embedding_with(table, d.tokens);
  Node x = d.positions.builder != nullptr
               ? tokens + embedding("wpe", d.positions, {.vocabulary = c.positions, .width = c.width})
               : tokens + learned_positions("wpe", {.length = c.positions});
  const RepeatResult layers = repeat("h", c.layers, x, [&](Iteration& it, Node y) {
    DecoderAttention a{.heads = c.heads, .mask = causal, .variant = c.attention};
    if (!c.scaled) a.scale = 1;
    const Node z = y + d.attention(it, "attn", layer_norm("ln_1", y, {.eps = c.eps}), a);
    const Node out =
        z + ffn("mlp", layer_norm("ln_2", z, {.eps = c.eps}), {.hidden = c.hidden, .activation = c.function});
    if (c.every_layer) it.side("layers", out);
    return out;
  });
  x = layer_norm("ln_f", layers.carried[0], {.eps = c.eps});
  g.output("hidden", x);
  const Node last = c.tied ? table : g.parameter("lm_head.weight", {words, width});
  g.output("logits", linear_with(d.wanted(x), last));
  if (c.every_layer) g.output("layers", layers.sides[0]);
  return g.finish();
}

}  // namespace treadle::models

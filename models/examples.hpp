#pragma once
// Small models that show and test the builder: each is an ordinary function from nothing to a graph, usable at compile
// time and at run time. `treadle explain NAME` prints them; tests run all of them on every backend.

#include <treadle/ops/rules.hpp>

namespace treadle::models {

/// A GPT-2-like decoder: learned positions, pre-norm, causal window.
inline constexpr auto tiny_gpt = [] {
  Builder g;
  const Node tokens = g.input("tokens", i32, {batch, seq});
  Node x = embedding("wte", tokens, {.vocabulary = 101, .width = 48}) + learned_positions("wpe", {.length = 256});
  x = repeat("h", 3, x, [](Node y) {
    y = y + self_attention("attn", layer_norm("ln_1", y), {.heads = 4, .mask = causal & window(64, 0)});
    return y + ffn("mlp", layer_norm("ln_2", y), {.hidden = 96, .activation = gelu_tanh});
  });
  g.output("logits", linear("lm_head", layer_norm("ln_f", x), {.width = 101, .bias = false}));
  return g.finish();
};

/// A BERT-like encoder: sinusoidal positions, post-norm, key padding by lengths.
inline constexpr auto encoder = [] {
  Builder g;
  const Node tokens = g.input("tokens", i32, {batch, seq});
  g.input("lengths", i32, {batch});
  Node x = embedding("embed", tokens, {.vocabulary = 67, .width = 40}) + sinusoidal_positions();
  x = repeat("layer", 2, x, [](Node y) {
    y = layer_norm("norm_1", y + self_attention("attn", y, {.heads = 5, .mask = key_lengths("lengths")}));
    return layer_norm("norm_2", y + ffn("mlp", y, {.hidden = 80, .activation = relu}));
  });
  g.output("hidden", x);
  return g.finish();
};

/// Encoder–decoder: two repeats; every decoder iteration captures the encoder's output.
inline constexpr auto encoder_decoder = [] {
  Builder g;
  const Node source = g.input("source", i32, {batch, dim("source_len")});
  const Node target = g.input("target", i32, {batch, dim("target_len")});
  Node memory = embedding("source_embed", source, {.vocabulary = 61, .width = 32}) + sinusoidal_positions();
  memory = repeat("encoder", 2, memory, [](Node y) {
    y = y + self_attention("attn", layer_norm("ln_1", y), {.heads = 4});
    return y + ffn("mlp", layer_norm("ln_2", y), {.hidden = 64, .activation = relu});
  });
  memory = layer_norm("encoder_norm", memory);
  Node x = embedding("target_embed", target, {.vocabulary = 59, .width = 32}) + sinusoidal_positions();
  x = repeat("decoder", 3, x, [memory](Node y) {
    y = y + self_attention("attn", layer_norm("ln_1", y), {.heads = 4, .mask = causal});
    y = y + cross_attention("cross", layer_norm("ln_2", y), memory, {.heads = 4});
    return y + ffn("mlp", layer_norm("ln_3", y), {.hidden = 64, .activation = gelu});
  });
  g.output("logits", linear("head", layer_norm("decoder_norm", x), {.width = 59}));
  return g.finish();
};

/// A ViT-like encoder over given patch rows: one class token makes patches + 1 positions.
inline constexpr auto vit = [] {
  Builder g;
  const DimSpec patches = dim("patches");
  const Node pixels = g.input("pixels", f32, {batch, patches, 27});
  const Node class_token = g.input("class_token", f32, {batch, 1, 36});
  Node x = linear("patch_embed", pixels, {.width = 36});
  x = concatenate({class_token, x}, 1) + learned_positions("positions", {.length = 65});
  x = repeat("block", 2, x, [](Node y) {
    y = y + self_attention("attn", layer_norm("ln_1", y), {.heads = 3});
    return y + ffn("mlp", layer_norm("ln_2", y), {.hidden = 72, .activation = gelu});
  });
  g.output("logits", linear("head", slice(layer_norm("ln_f", x), 1, 0, 1), {.width = 10}));
  return g.finish();
};

/// One step of a decoder with a KV cache as state: `fresh` new tokens after `past` ones.
inline constexpr auto decoder_step = [] {
  Builder g;
  const DimSpec past = dim("past"), fresh = dim("fresh"), capacity = 64;
  g.input("history", i32, {past});  // binds the dim; its values are not read
  const Node tokens = g.input("tokens", i32, {1, fresh});
  Node x = embedding("wte", tokens, {.vocabulary = 53, .width = 32}) +
           learned_positions("wpe", {.length = 64, .offset = past});
  x = repeat("h", 2, x, [&](Iteration& it, Node y) {
    const Node n = rms_norm("ln_1", y);
    const Node q = split_heads(linear("q", n, {.width = 32, .bias = false}), 4);
    const Node k = split_heads(linear("k", n, {.width = 16, .bias = false}), 2);
    const Node v = split_heads(linear("v", n, {.width = 16, .bias = false}), 2);
    const Node keys = append(it.state("k_cache", f32, {1, 2, capacity, 8}), k, 2, past);
    const Node values = append(it.state("v_cache", f32, {1, 2, capacity, 8}), v, 2, past);
    y = y + linear("out", merge_heads(attention(q, keys, values, {.mask = causal})), {.width = 32, .bias = false});
    return y + ffn("mlp", rms_norm("ln_2", y), {.hidden = 64, .activation = silu, .bias = false});
  });
  g.output("logits", linear("lm_head", rms_norm("ln_f", x), {.width = 53, .bias = false}));
  return g.finish();
};

/// Linear attention (elu + 1) in every layer.
inline constexpr auto linear_transformer = [] {
  Builder g;
  const Node tokens = g.input("tokens", i32, {batch, seq});
  Node x = embedding("wte", tokens, {.vocabulary = 71, .width = 48}) + sinusoidal_positions();
  x = repeat("h", 2, x, [](Node y) {
    y = y + self_attention("attn", layer_norm("ln_1", y), {.heads = 3, .mask = causal, .variant = variants::linear()});
    return y + ffn("mlp", layer_norm("ln_2", y), {.hidden = 96, .activation = gelu});
  });
  g.output("logits", linear("lm_head", x, {.width = 71}));
  return g.finish();
};

/// Longformer's pattern with shared projections: a window and global tokens.
inline constexpr auto longformer_like = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 32});
  const Node y =
      x + self_attention("attn", layer_norm("ln", x), {.heads = 2, .mask = window(8, 8) | global_tokens({0, 3})});
  g.output("y", y);
  return g.finish();
};

/// Grouped-query attention, RMS norm, packed documents.
inline constexpr auto packed_documents = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 48});
  g.input("document", i32, {seq});
  const Node y = x + self_attention("attn", rms_norm("ln", x),
                                    {.heads = 6, .kv_heads = 2, .mask = causal & documents("document"), .bias = false});
  g.output("y", y);
  return g.finish();
};

/// Attention written out from primitive nodes: softmax(scale(q kᵀ) + mask) v. The passes find it.
inline constexpr auto written_out = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 32});
  const Node q = split_heads(linear("q", x, {.width = 32}), 4);
  const Node k = split_heads(linear("k", x, {.width = 32}), 4);
  const Node v = split_heads(linear("v", x, {.width = 32}), 4);
  const Node scores = scale(matmul(q, transpose(k)), 0.35355339059327373);
  const Node m = mask_node(g, causal, seq, seq);
  g.output("y", linear("out", merge_heads(matmul(softmax(scores + mask_to_bias(m)), v)), {.width = 32}));
  return g.finish();
};

/// A repeat in a repeat, with a side output of every outer iteration.
inline constexpr auto nested = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 24});
  const Node context = g.input("context", f32, {batch, 24});
  const RepeatResult r = repeat("outer", 2, x, [&](Iteration& it, Node y) {
    y = repeat("inner", 3, y,
               [&](Node z) { return add(z, ffn("mlp", rms_norm("ln", z), {.hidden = 36, .activation = silu})); });
    it.side("outer_hidden", y);
    return y;
  });
  g.output("y", layer_norm("ln_f", r.carried[0]));
  g.output("hidden", r.sides[0]);
  g.output("context_out", linear("context_proj", context, {.width = 8}));
  return g.finish();
};

/// A LLaMA-like decoder as a first draft has it: scaled embeddings, rotary positions, queries scaled by hand, SwiGLU,
/// logits of the last token, and a measure that nobody reads.
inline constexpr auto first_draft = [] {
  Builder g;
  const Node tokens = g.input("tokens", i32, {batch, seq});
  Node x = scale(embedding("embed", tokens, {.vocabulary = 59, .width = 32}), 4);
  x = repeat("layers", 2, x, [](Node y) {
    const Node h = rms_norm("input_norm", y);
    const auto heads = [&](std::string_view leaf) {
      return rope(split_heads(linear(leaf, h, {.width = 32, .bias = false}), 4));
    };
    const Node q = scale(heads("q_proj"), 0.5), k = heads("k_proj"),
               v = split_heads(linear("v_proj", h, {.width = 32, .bias = false}), 4);
    const Node a = attention(q, k, v, {.mask = causal, .scale = 0.70710678});
    y = y + linear("o_proj", merge_heads(a), {.width = 32, .bias = false});
    softmax(matmul(q, transpose(k)));
    return y + gated_ffn("mlp", rms_norm("post_norm", y), {.hidden = 64});
  });
  const Node logits = linear("lm_head", rms_norm("norm", x), {.width = 59, .bias = false});
  g.output("logits", slice(logits, 1, seq - 1, 1));
  return g.finish();
};

/// Linear attention as its equations say it, without an output projection, and positions of a fixed number of patches.
inline constexpr auto linear_written_out = [] {
  Builder g;
  const Node pixels = g.input("pixels", f32, {batch, 8, 12}), positions = scale(sinusoidal_positions(g, 8, 24), 0.1);
  const Node x = linear("embed", pixels, {.width = 24}) + positions;
  const auto heads = [&](std::string_view leaf) { return split_heads(linear(leaf, x, {.width = 24}), 3); };
  const auto phi = [](Node y) { return activate(y, elu_plus_one); };
  const Node q = heads("q"), k = heads("k"), v = heads("v"), ones = full(g, {1, 1, 8, 1}, 1);
  // φ of queries and keys is written twice, as in the fraction; each part is named, for C++ orders no arguments.
  const Node above_q = phi(q), above_k = transpose(phi(k)), above = matmul(above_q, matmul(above_k, v));
  const Node below_q = phi(q), below_k = transpose(phi(k)), below = matmul(below_q, matmul(below_k, ones));
  const Node y = above * activate(scale(activate(below, activation::log), -1), activation::exp);
  const Node sum = x + merge_heads(y);
  g.output("y", sum + layer_norm("ln", sum));
  return g.finish();
};

struct Entry {
  std::string_view name, summary;
  Graph (*build)();
};

inline constexpr Entry all[] = {
    {"tiny_gpt", "decoder, 3 layers, causal window", +tiny_gpt},
    {"encoder", "post-norm encoder, key padding by lengths", +encoder},
    {"encoder_decoder", "two repeats, cross-attention", +encoder_decoder},
    {"vit", "patches + 1 positions", +vit},
    {"decoder_step", "KV cache as state, grouped-query attention", +decoder_step},
    {"linear_transformer", "linear attention (elu + 1)", +linear_transformer},
    {"longformer_like", "window and global tokens", +longformer_like},
    {"packed_documents", "causal within documents, grouped-query", +packed_documents},
    {"written_out", "attention from primitive nodes, fused by the passes", +written_out},
    {"nested", "a repeat in a repeat, side outputs", +nested},
    {"first_draft", "rotary positions, SwiGLU, last token; scales and dead ends left in", +first_draft},
    {"linear_written_out", "linear attention from primitive nodes, no output projection", +linear_written_out},
};

}  // namespace treadle::models

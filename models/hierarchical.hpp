#pragma once
// Funnel-Transformer: blocks of layers between which neighbouring tokens are pooled, and a decoder that goes back to
// every token (Dai et al. 2020, §2.2–2.3).

#include <treadle/models/padding.hpp>

#include <vector>

namespace treadle::models {

struct FunnelConfig {
  std::int64_t vocabulary = 30522, width = 768, heads = 12, head_dim = 64, hidden = 3072;
  std::vector<std::int64_t> blocks;  ///< layers of each block; the length is halved between blocks
  std::int64_t decoder_layers = 2;   ///< of every token; 0: no decoder
  activation function = gelu_tanh;
  double eps = 1e-9;
  bool largest = false;          ///< pools by the largest of two tokens; else by their mean
  bool padding = true;           ///< takes attention_mask [batch, seq]
  bool masked_language = false;  ///< output `logits` [batch, seq, vocabulary]; needs the decoder
  bool tied = true;              ///< its last matrix is the table of embeddings
};

namespace detail {
/// What attention knows of the tokens after some poolings. The first token, [CLS], is never pooled away: it stands
/// alone at the start, and the pairs of tokens that become one begin behind it.
struct FunnelLevel {
  DimSpec length = seq;
  std::int64_t step = 1;  ///< between positions of neighbouring tokens
  Node segments{};        ///< one-hot [batch, length, 3]
  Node kept{};            ///< 1 for tokens, 0 for padding: [batch, length, 1]
  Node keys{};            ///< what positions and segments add to a key [batch, heads, length, width + 3]
};

/// [first, first, second, …]: runs of two begin behind the first token. One row more than x.
constexpr Node first_twice(Node x) { return concatenate({slice(x, 1, 0, 1), x}, 1); }

/// Pools all that is left of x [batch, length, width] by runs of two; an even length loses its last token.
constexpr Node funnel_pool(Node x, const DimSpec& length, bool largest) {
  const Node runs = slice(first_twice(x), 1, 0, length);
  return largest ? max_pooling_of_runs(runs, 2) : mean_pooling_of_runs(runs, 2);
}

/// Rotates rows [batch, heads, length − 1, width], those behind the first token, by their positions.
constexpr Node funnel_rotate(Builder& g, Node x, const FunnelLevel& at) {
  const DimSpec rows = at.length - 1;
  // Sorting equal numbers counts: 0, 1, 2, …; then every step-th.
  const Node all = reshape(argsort(full(g, {rows * at.step}, 0)), {rows, at.step});
  return rope(x, {.positions = reshape(slice(all, 1, 0, 1), {rows})});
}

/// Rows [batch, heads, length, ·] whose first, that of [CLS], is 0: no positions and segments there.
constexpr Node behind_cls(Builder& g, Node rows, const FunnelConfig& c) {
  return concatenate({full(g, {batch, c.heads, 1, c.width + 3}, 0), rows}, 2);
}

constexpr Node funnel_keys(Builder& g, const FunnelLevel& at, const FunnelConfig& c) {
  const DimSpec rows = at.length - 1;
  const Node cosine = full(g, {batch, c.heads, rows, c.width / 2}, 1),
             sine = full(g, {batch, c.heads, rows, c.width / 2}, 0);
  const Node positions = funnel_rotate(g, concatenate({cosine, sine}, 3), at);
  const Node segments = reshape(slice(at.segments, 1, 1, rows), {batch, 1, rows, 3});
  return behind_cls(g, concatenate({positions, segments + full(g, {1, c.heads, 1, 1}, 0)}, 3), c);
}

constexpr FunnelLevel funnel_first_level(Builder& g, const FunnelConfig& c) {
  FunnelLevel level;
  const Node segments = g.input("token_type_ids", i32, {batch, seq});
  level.segments = embedding_with(constant(g, {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}), segments);
  if (c.padding) {
    const Node mask = g.input("attention_mask", i32, {batch, seq});
    level.kept = embedding_with(constant(g, {2, 1}, {0, 1}), mask);
  }
  level.keys = funnel_keys(g, level, c);
  return level;
}

constexpr FunnelLevel funnel_next_level(Builder& g, const FunnelLevel& above, const FunnelConfig& c) {
  FunnelLevel level;
  level.length = ceil_div(above.length, 2);
  level.step = 2 * above.step;
  const Node pairs = slice(first_twice(above.segments), 1, 0, 2 * level.length);
  const Node firsts = slice(reshape(pairs, {batch, level.length, 2, 3}), 2, 0, 1);
  level.segments = reshape(firsts, {batch, level.length, 3});
  if (c.padding) level.kept = scale(funnel_pool(scale(above.kept, -1), above.length, true), -1);  // the smallest
  level.keys = funnel_keys(g, level, c);
  return level;
}

/// Scores are ((q + u)·k + (q + v)ᵀ W r(i − j) + (q + w)·s)/√head_dim with r = (sin, cos) of the distance and s by
/// whether the segments are the same (appendix A.2). r(i − j) is a rotation of both sides, and segments are a product
/// of one-hot rows, so that all three are one product of longer queries and keys.
constexpr Node funnel_attention(Node x, Node memory, const FunnelLevel& to, const FunnelLevel& from,
                                const FunnelConfig& c) {
  Builder& g = *x.builder;
  const Dim heads = g.dim_number(c.heads), dim = g.dim_number(c.head_dim), width = g.dim_number(c.width);
  const std::int64_t half = c.width / 2, all = c.heads * c.head_dim;
  const DimSpec rows = to.length - 1;
  const auto bias = [&](std::string_view leaf) {
    return reshape(g.parameter(leaf, {heads, dim}), {c.heads, 1, c.head_dim});
  };
  const Node q = split_heads(linear("q_head", x, {.width = all, .bias = false}), c.heads),
             k = split_heads(linear("k_head", memory, {.width = all}), c.heads),
             v = split_heads(linear("v_head", memory, {.width = all}), c.heads);
  const Node kernel = transpose(g.parameter("r_kernel", {width, heads, dim}), {1, 2, 0});
  const Node waves = slice(matmul(q + bias("r_r_bias"), kernel), 2, 1, rows);
  const Node turned = concatenate({slice(waves, 3, half, half), scale(slice(waves, 3, 0, half), -1)}, 3);
  const Node positions = funnel_rotate(g, turned, to);

  // Of segments 0 and 1, and [CLS], which is of both.
  const Node alike = linear_with(to.segments, constant(g, {3, 3}, {1, 0, 1, 0, 1, 1, 1, 1, 1}));
  const Node same = reshape(slice(alike, 1, 1, rows), {batch, 1, rows, 3});
  const Node table = transpose(g.parameter("seg_embed", {g.dim_number(2), heads, dim}), {1, 2, 0});
  const Node scores = slice(matmul(q + bias("r_s_bias"), table), 2, 1, rows);
  const Node different = slice(scores, 3, 0, 1), equal = slice(scores, 3, 1, 1);
  const Node gain = equal + scale(different, -1);
  const Node segments = different + gain * same;

  const Node queries = concatenate({q + bias("r_w_bias"), behind_cls(g, concatenate({positions, segments}, 3), c)}, 3);
  AttentionOptions o;
  o.scale = 1 / square_root(static_cast<double>(c.head_dim));
  if (c.padding) {
    o.mask = mask_mod([](auto b, auto, auto, auto key) { return lookup("kept", b, key) > 0.5; });
    o.tables = {{"kept", reshape(from.kept, {batch, from.length})}};
  }
  return linear("post_proj", merge_heads(attention(queries, concatenate({k, from.keys}, 3), v, o)), {.width = c.width});
}

constexpr Node funnel_layer(Node x, Node memory, const FunnelLevel& to, const FunnelLevel& from,
                            const FunnelConfig& c) {
  Builder& g = *x.builder;
  g.push_scope("attention");
  const Node y = layer_norm("layer_norm", x + funnel_attention(x, memory, to, from, c), {.eps = c.eps});
  g.pop_scope();
  g.push_scope("ffn");
  const Node h = activate(linear("linear_1", y, {.width = c.hidden}), c.function);
  const Node z = layer_norm("layer_norm", y + linear("linear_2", h, {.width = c.width}), {.eps = c.eps});
  g.pop_scope();
  return z;
}

/// Each pooled token as often as it stands for tokens, cut or filled with zeros to seq.
constexpr Node funnel_upsample(Builder& g, Node x, const FunnelLevel& at, const FunnelConfig& c) {
  const DimSpec rows = at.length - 1;
  const Node pooled = reshape(slice(x, 1, 1, rows), {batch, rows, 1, c.width});
  const Node repeated = reshape(pooled + full(g, {1, 1, at.step, 1}, 0), {batch, rows * at.step, c.width});
  const Node filled = concatenate({repeated, full(g, {batch, at.step - 1, c.width}, 0)}, 1);
  return concatenate({slice(x, 1, 0, 1), slice(filled, 1, 0, seq - 1)}, 1);
}
}  // namespace detail

/// Inputs input_ids, token_type_ids (2 for [CLS], which is the first token) and, with padding, attention_mask, i32
/// [batch, seq]; at least 2^(blocks − 1) + 1 tokens. Outputs `encoder_hidden` after the last block, [batch, ⌈seq /
/// 2^(blocks − 1)⌉, width]; with a decoder `hidden` [batch, seq, width]; and what is asked for. The first layer behind
/// a pooling has pooled queries only: its keys and values are those of the block before.
constexpr Graph funnel(const FunnelConfig& c) {
  Builder g;
  const Dim words = g.dim_number(c.vocabulary), width = g.dim_number(c.width);
  const Node table = g.parameter("embeddings.word_embeddings.weight", {words, width});
  const Node ids = g.input("input_ids", i32, {batch, seq});
  Node x = layer_norm("embeddings.layer_norm", embedding_with(table, ids), {.eps = c.eps});
  const detail::FunnelLevel first = detail::funnel_first_level(g, c);
  detail::FunnelLevel level = first;
  Node first_block = x;
  for (std::size_t block = 0; block < c.blocks.size(); ++block) {
    detail::FunnelLevel from = level;
    Node memory = x;
    if (block > 0) {
      x = detail::funnel_pool(x, from.length, c.largest);
      level = detail::funnel_next_level(g, from, c);
    }
    for (std::int64_t layer = 0; layer < c.blocks[block]; ++layer) {
      const auto number = static_cast<std::int64_t>(block);
      g.push_scope(Text("encoder.blocks.").append(number).append(".").append(layer).view());
      x = detail::funnel_layer(x, memory, level, from, c);
      g.pop_scope();
      memory = x;
      from = level;
    }
    if (block == 0) first_block = x;
  }
  g.output("encoder_hidden", x);
  if (c.decoder_layers == 0) return g.finish();
  x = detail::funnel_upsample(g, x, level, c) + first_block;
  x = repeat("decoder.layers", c.decoder_layers, x,
             [&](Node y) { return detail::funnel_layer(y, y, first, first, c); });
  g.output("hidden", x);
  if (c.masked_language) {
    const Node last = c.tied ? table : g.parameter("lm_head.weight", {words, width});
    const Node scores = linear_with(x, last), bias = g.parameter("lm_head.bias", {words});
    g.output("logits", scores + bias);
  }
  return g.finish();
}

}  // namespace treadle::models

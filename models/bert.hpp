#pragma once
// BERT and RoBERTa: post-norm encoders with learned positions (Devlin et al. 2019; Liu et al. 2019).

#include <treadle/models/padding.hpp>

namespace treadle::models {

struct BertConfig {
  std::int64_t vocabulary = 30522, width = 768, layers = 12, heads = 12, hidden = 3072, positions = 512, segments = 2;
  activation function = gelu;
  double eps = 1e-12;
  bool padding = true;             ///< takes attention_mask [batch, seq]
  bool given_positions = false;    ///< takes position_ids [batch, seq]: RoBERTa counts over what is no padding
  bool pooler = false;             ///< output `pooled` [batch, width]: tanh of a projection of the first token
  bool masked_language = false;    ///< output `prediction_logits` [batch, seq, vocabulary]
  bool tied = true;                ///< its last matrix is the table of embeddings
  bool scaled_embeddings = false;  ///< those of tokens by √width
  bool next_sentence = false;      ///< output `seq_relationship_logits` [batch, 2]; needs the pooler
  bool every_layer = false;        ///< output `layers` [layers, batch, seq, width]: the hidden states
  std::string_view head = "cls.predictions.transform";  ///< where the masked language head keeps its parameters
  AttentionVariant attention{};                         ///< of every layer
  /// A boolean table [blocks, blocks] that `attention` looks up, as an input; block 0: none.
  std::string_view block_table{};
  std::int64_t block = 0;
};

/// Token, segment and position embeddings, and their norm.
constexpr Node bert_embeddings(Builder& g, Node table, const BertConfig& c) {
  const Node ids = g.input("input_ids", i32, {batch, seq}), segments = g.input("token_type_ids", i32, {batch, seq});
  Node words = embedding_with(table, ids);
  if (c.scaled_embeddings) words = scale(words, square_root(static_cast<double>(c.width)));
  Node x =
      words + embedding("embeddings.token_type_embeddings", segments, {.vocabulary = c.segments, .width = c.width});
  if (c.given_positions) {
    const Node positions = g.input("position_ids", i32, {batch, seq});
    x = x + embedding("embeddings.position_embeddings", positions, {.vocabulary = c.positions, .width = c.width});
  } else {
    x = x + learned_positions("embeddings.position_embeddings", {.length = c.positions});
  }
  return layer_norm("embeddings.LayerNorm", x, {.eps = c.eps});
}

/// The rest of a layer behind its attention: residuals, norms and the feed-forward network.
constexpr Node bert_layer(Node x, Node attended, const BertConfig& c) {
  const Node y = layer_norm("attention.output.LayerNorm", x + attended, {.eps = c.eps});
  return layer_norm("output.LayerNorm", y + ffn("mlp", y, {.hidden = c.hidden, .activation = c.function}),
                    {.eps = c.eps});
}

/// What stands behind the encoder, as far as the configuration asks for it.
constexpr void bert_heads(Builder& g, Node x, Node table, const BertConfig& c) {
  g.output("hidden", x);
  if (c.masked_language) {
    Node h = activate(linear(Text(c.head).append(".dense").view(), x, {.width = c.width}), c.function);
    h = layer_norm(Text(c.head).append(".LayerNorm").view(), h, {.eps = c.eps});
    const Dim words = g.dim_number(c.vocabulary);
    const Node last = c.tied ? table : g.parameter("cls.predictions.decoder.weight", {words, g.dim_number(c.width)});
    const Node scores = linear_with(h, last), bias = g.parameter("cls.predictions.bias", {words});
    g.output("prediction_logits", scores + bias);
  }
  if (!c.pooler) return;
  const Node pooled = tanh(linear("pooler.dense", first_token(x), {.width = c.width}));
  g.output("pooled", pooled);
  if (c.next_sentence) g.output("seq_relationship_logits", linear("cls.seq_relationship", pooled, {.width = 2}));
}

/// Inputs input_ids, token_type_ids and, as configured, attention_mask and position_ids, i32 [batch, seq]. Output
/// `hidden` [batch, seq, width] and those of the heads. Padding is masked as keys; its own rows are computed.
constexpr Graph bert(const BertConfig& c) {
  Builder g;
  if (c.padding) g.input("attention_mask", i32, {batch, seq});
  if (c.block > 0) g.input(c.block_table, boolean, {ceil_div(seq, c.block), ceil_div(seq, c.block)});
  const Node table =
      g.parameter("embeddings.word_embeddings.weight", {g.dim_number(c.vocabulary), g.dim_number(c.width)});
  const Node embedded = bert_embeddings(g, table, c);
  const RepeatResult r = repeat("encoder.layer", c.layers, embedded, [&](Iteration& it, Node x) {
    const Node a = self_attention(
        "attention", x, {.heads = c.heads, .mask = with_padding(std::nullopt, c.padding), .variant = c.attention});
    const Node y = bert_layer(x, a, c);
    if (c.every_layer) it.side("layers", y);
    return y;
  });
  bert_heads(g, r.carried[0], table, c);
  if (c.every_layer) g.output("layers", r.sides[0]);
  return g.finish();
}

}  // namespace treadle::models

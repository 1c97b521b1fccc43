#pragma once
// BigBird: BERT's layers with a window of blocks, global blocks and random blocks (Zaheer et al. 2020, §2 and appendix
// D).

#include <treadle/graph/mask/patterns.hpp>
#include <treadle/models/bert.hpp>

namespace treadle::models {

struct BigBirdConfig {
  BertConfig base{.vocabulary = 50358, .positions = 4096, .function = gelu_tanh};
  bool bias = true;         ///< of queries, keys and values
  std::int64_t block = 64;  ///< tokens of a block; 0: dense attention, or `base.attention`
  std::int64_t random = 3;  ///< random blocks of each block of queries
  /// Takes random_blocks i32 [heads · ⌈seq / block⌉, random]: those of each head and block of queries. Without it they
  /// are what the published code has in evaluation mode, the first block each time.
  bool given_blocks = false;
};

namespace detail {
/// Which pairs count. Sequences of up to (5 + 2·random)·block tokens have dense attention, as in the published code.
/// There it pads the others to whole blocks; here the last block is shorter, which is the same.
constexpr Mask big_bird_mask(const BigBirdConfig& c) {
  const std::int64_t shortest = (5 + 2 * c.random) * c.block;
  const Mask dense = mask_mod([&](auto, auto, auto q, auto) { return length(q) <= shortest; });
  treadle::mask::BigBirdOptions o{.block = c.block, .window = 3, .first = 1, .last = 1};
  if (c.given_blocks) {
    o.random = c.random;
    o.list = "random_blocks";
    o.rows = treadle::mask::Blocks::per_head;
  }
  const Mask blocks = big_bird(o);
  if (!c.base.padding) return dense | blocks;
  return (dense | (blocks & unpadded_queries)) & unpadded_keys;
}

/// The first block, which all see, stands in the published softmax once more for each random block of queries that are
/// neither in the first nor in the last block: its weight is 1 + random.
constexpr scalar::Function first_block_again(std::int64_t block, std::int64_t random) {
  const double more = natural_log(1 + static_cast<double>(random));
  const std::int64_t shortest = (5 + 2 * random) * block;
  return score_mod([&](auto score, auto, auto, auto q, auto k) {
    const auto last = (length(q) - 1) / block * block;
    return score + where((k < block) & (q >= block) & (q < last) & (length(q) > shortest), more, 0.0);
  });
}

constexpr Node big_bird_attention(std::string_view leaf, Node x, const BigBirdConfig& c) {
  Builder& g = *x.builder;
  const BertConfig& base = c.base;
  g.push_scope(leaf);
  const auto heads = [&](std::string_view name) {
    return split_heads(linear(name, x, {.width = base.width, .bias = c.bias}), base.heads);
  };
  const Node q = heads("q"), k = heads("k"), v = heads("v");
  Node y{&g, {}};
  if (c.block == 0) {
    y = attend(base.attention, {q, k, v, x, x}, {.mask = with_padding(std::nullopt, base.padding)});
  } else {
    AttentionOptions o{.mask = big_bird_mask(c)};
    if (c.random > 0 && !c.given_blocks) o.score = first_block_again(c.block, c.random);
    y = attention(q, k, v, o);
  }
  const Node out = linear("out", merge_heads(y), {.width = base.width});
  g.pop_scope();
  return out;
}
}  // namespace detail

/// Inputs and outputs of `bert`; with `given_blocks` random_blocks too. With blocks, attention of padding is 0 before
/// the output projection.
constexpr Graph big_bird_model(const BigBirdConfig& c) {
  Builder g;
  const BertConfig& base = c.base;
  if (base.padding) g.input("attention_mask", i32, {batch, seq});
  if (c.given_blocks) g.input("random_blocks", i32, {base.heads * ceil_div(seq, c.block), c.random});
  const Node table =
      g.parameter("embeddings.word_embeddings.weight", {g.dim_number(base.vocabulary), g.dim_number(base.width)});
  const Node embedded = bert_embeddings(g, table, base);
  const RepeatResult r = repeat("encoder.layer", base.layers, embedded, [&](Iteration& it, Node x) {
    const Node y = bert_layer(x, detail::big_bird_attention("attention", x, c), base);
    if (base.every_layer) it.side("layers", y);
    return y;
  });
  bert_heads(g, r.carried[0], table, base);
  if (base.every_layer) g.output("layers", r.sides[0]);
  return g.finish();
}

}  // namespace treadle::models

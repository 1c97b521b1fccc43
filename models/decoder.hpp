#pragma once
// What decoder-only models share: their inputs, with or without padding and a cache, and attention that reads and
// writes the cache.

#include <treadle/models/padding.hpp>

namespace treadle::models {

struct DecoderInputs {
  bool padding = false;          ///< takes attention_mask [batch, seq], with a cache [batch, past + seq]
  bool given_positions = false;  ///< takes position_ids [batch, seq]; else tokens are counted from the first
  /// Keys and values of `past` earlier tokens lie in the states `….k_cache` and `….v_cache` [layers, batch, key heads,
  /// capacity, head_dim]; the tokens of a run are appended to them.
  bool cache = false;
};

struct DecoderAttention {
  std::int64_t heads = 1, kv_heads = 0, head_dim = 0;  ///< 0: as many as heads, width / heads
  bool qkv_bias = true, out_bias = true;
  std::optional<Mask> mask{};
  std::optional<double> scale{};
  std::optional<RopeOptions> rope{};
  Node score_bias{};
  AttentionVariant variant{};
};

/// The inputs of a decoder: input_ids i32 [batch, seq], and what DecoderInputs asks for.
class Decoder {
 public:
  Node tokens, positions;

  constexpr Decoder(Builder& g, DecoderInputs inputs) : inputs_(inputs) {
    tokens = g.input("input_ids", i32, {batch, seq});
    if (inputs.given_positions) positions = g.input("position_ids", i32, {batch, seq});
    if (inputs.padding) g.input("attention_mask", i32, {batch, past() + seq});
    if (inputs.cache) g.input("history", i32, {dim("past")});  // binds the dim; its values are not read
  }

  /// Tokens before those of this run.
  constexpr DimSpec past() const { return inputs_.cache ? DimSpec(dim("past")) : DimSpec(0); }

  /// Projections, positions, cache, attention and the output projection: parameters `leaf`.q, .k, .v and .out.
  constexpr Node attention(Iteration& it, std::string_view leaf, Node x, const DecoderAttention& o,
                           Where where = Where::current()) const {
    Builder& g = *x.builder;
    if (!g.usable(x)) return {&g, {}};
    const std::int64_t width = *g.graph().dims.constant(g.shape(x).back()),
                       kv_heads = o.kv_heads == 0 ? o.heads : o.kv_heads,
                       head_dim = o.head_dim == 0 ? width / o.heads : o.head_dim;
    g.push_scope(leaf);
    const auto heads = [&](std::string_view name, std::int64_t count) {
      return split_heads(linear(name, x, {.width = count * head_dim, .bias = o.qkv_bias}, where), count, "", where);
    };
    Node q = heads("q", o.heads), k = heads("k", kv_heads), v = heads("v", kv_heads);
    if (o.rope) {
      q = rope(q, *o.rope, where);
      k = rope(k, *o.rope, where);
    }
    if (inputs_.cache) {
      const DimSpec capacity = dim("capacity");
      k = append(it.state("k_cache", f32, {batch, kv_heads, capacity, head_dim}), k, 2, past(), where);
      v = append(it.state("v_cache", f32, {batch, kv_heads, capacity, head_dim}), v, 2, past(), where);
    }
    const Node y =
        attend(o.variant, {q, k, v, x, x},
               {.mask = with_padding(o.mask, inputs_.padding), .bias = o.score_bias, .scale = o.scale}, where);
    const Node out = linear("out", merge_heads(y, where), {.width = width, .bias = o.out_bias}, where);
    g.pop_scope();
    return out;
  }

 private:
  DecoderInputs inputs_;
};

}  // namespace treadle::models

#pragma once
// What decoder-only models share: their inputs, with or without padding and a cache, and attention that reads and
// writes the cache.

#include <treadle/graph/scalar/compose.hpp>
#include <treadle/models/padding.hpp>

namespace treadle::models {

struct DecoderInputs {
  bool padding = false;          ///< takes attention_mask [batch, seq]
  bool given_positions = false;  ///< takes position_ids [batch, seq]; else tokens are counted from the first
  /// Keys and values of earlier tokens lie in the states `….k_cache` and `….v_cache` [layers, batch, key heads,
  /// capacity, head_dim]. Where the tokens of a run stand is data: position_ids [batch, seq], and cache_slots
  /// [batch, seq], the rows of the cache for them, −1 for padding. `logits` are those of the token last_token[b, 0] of
  /// each sequence alone. So a step is planned once, and the sequences of a batch have lengths of their own.
  bool cache = false;
  /// A boolean table [blocks, blocks] that the attention's variant looks up, as an input; block 0: none.
  std::string_view block_table{};
  std::int64_t block = 0;
};

struct DecoderAttention {
  std::int64_t heads = 1, kv_heads = 0, head_dim = 0;  ///< 0: as many as heads, width / heads
  bool qkv_bias = true, out_bias = true;
  std::optional<Mask> mask{};
  std::optional<double> scale{};
  std::optional<RopeOptions> rope{};
  Node score_bias{};
  Tables tables{};  ///< what the variant looks up beside inputs
  AttentionVariant variant{};
};

namespace detail {
/// In a cache slot is position.
constexpr scalar::Function in_cache(const scalar::Function& f) {
  return scalar::at_positions(
      f, [](auto b, auto q) { return lookup<i32>("position_ids", b, q); }, [](auto, auto k) { return k; });
}
template <class Symbol>
constexpr Symbol position_in_ring(Symbol b, Symbol k) {
  const auto newest = lookup<i32>("cache_newest", b);
  return newest - (newest - k) % length(k);
}
/// In a ring position p lies in slot p mod capacity; the last position written decides which one a slot holds: those
/// before the first token count as negative.
constexpr scalar::Function in_ring(const scalar::Function& f) {
  return scalar::at_positions(
      f, [](auto b, auto q) { return lookup<i32>("position_ids", b, q); },
      [](auto b, auto k) { return position_in_ring(b, k); });
}
inline constexpr Mask filled_slots = mask_mod([](auto b, auto, auto, auto k) { return position_in_ring(b, k) >= 0; });
inline constexpr Mask kept_queries =
    mask_mod([](auto b, auto, auto q, auto) { return lookup<i32>("cache_slots", b, q) >= 0; });
}  // namespace detail

/// The inputs of a decoder: input_ids i32 [batch, seq], and what DecoderInputs asks for.
class Decoder {
 public:
  Node tokens, positions;

  /// `window`: the keys that every layer sees at most, or 0. With a cache that is a ring then: position p lies in slot
  /// p mod capacity, and cache_newest [batch] is the position of each sequence's last token of the run. The capacity
  /// must be at least window + seq − 1.
  constexpr Decoder(Builder& g, DecoderInputs inputs, std::int64_t window = 0)
      : inputs_(inputs), ring_(inputs.cache && window > 0) {
    tokens = g.input("input_ids", i32, {batch, seq});
    if (inputs.given_positions || inputs.cache) positions = g.input("position_ids", i32, {batch, seq});
    if (inputs.padding && !inputs.cache) g.input("attention_mask", i32, {batch, seq});
    if (inputs.block > 0) {
      const DimSpec blocks = ceil_div(seq, inputs.block);
      g.input(inputs.block_table, boolean, {blocks, blocks});
    }
    if (!inputs.cache) return;
    slots_ = g.input("cache_slots", i32, {batch, seq});
    if (ring_) g.input("cache_newest", i32, {batch});
    last_ = g.input("last_token", i32, {batch, 1});
  }

  /// Rows of `hidden` [batch, seq, width] that the output `logits` is wanted for.
  constexpr Node wanted(Node hidden, Where where = Where::current()) const {
    return inputs_.cache ? gather(hidden, last_, {.axis = 1, .batch_dims = 1}, where) : hidden;
  }

  /// Projections, positions, cache, attention and the output projection: parameters `leaf`.q, .k, .v and .out.
  constexpr Node attention(Iteration& it, std::string_view leaf, Node x, const DecoderAttention& o,
                           Where where = Where::current()) const {
    Builder& g = *x.builder;
    if (!g.usable(x)) return {&g, {}};
    const std::int64_t width = *g.graph().dims.constant(g.shape(x).back());
    const std::int64_t kv_heads = key_heads(o), head_dim = dim_of_head(o, width);
    g.push_scope(leaf);
    const auto heads = [&](std::string_view name, std::int64_t count) {
      return split_heads(linear(name, x, {.width = count * head_dim, .bias = o.qkv_bias}, where), count, "", where);
    };
    Node q = heads("q", o.heads), k = heads("k", kv_heads), v = heads("v", kv_heads);
    if (o.rope) {
      q = rope(q, *o.rope, where);
      k = rope(k, *o.rope, where);
    }
    std::optional<Mask> mask = o.mask;
    AttentionVariant variant = o.variant;
    if (inputs_.cache) {
      const DimSpec capacity = dim("capacity");
      k = append(it.state("k_cache", f32, {batch, kv_heads, capacity, head_dim}), k, 2, slots_, where);
      v = append(it.state("v_cache", f32, {batch, kv_heads, capacity, head_dim}), v, 2, slots_, where);
      read_from_cache(g, variant, mask, where);
    } else {
      mask = with_padding(mask, inputs_.padding);
    }
    const Node y = attend(variant, {q, k, v, x, x},
                          {.mask = mask, .bias = o.score_bias, .scale = o.scale, .tables = o.tables}, where);
    const Node out = linear("out", merge_heads(y, where), {.width = width, .bias = o.out_bias}, where);
    g.pop_scope();
    return out;
  }

  /// Attention to an encoder's keys and values, which lie in the states `….cross_k` and `….cross_v` [layers, batch, key
  /// heads, source, head_dim]: parameters `leaf`.q and .out. Needs a cache.
  constexpr Node cross_attention(Iteration& it, std::string_view leaf, Node x, const DecoderAttention& o,
                                 Where where = Where::current()) const {
    Builder& g = *x.builder;
    if (!g.usable(x)) return {&g, {}};
    const std::int64_t width = *g.graph().dims.constant(g.shape(x).back());
    const std::int64_t kv_heads = key_heads(o), head_dim = dim_of_head(o, width);
    g.push_scope(leaf);
    const Node q = split_heads(linear("q", x, {.width = o.heads * head_dim, .bias = o.qkv_bias}, where), o.heads);
    const DimSpec source = dim("source");
    const Node k = it.state("cross_k", f32, {batch, kv_heads, source, head_dim}),
               v = it.state("cross_v", f32, {batch, kv_heads, source, head_dim});
    const Node y = attend(o.variant, {q, k, v, x, {}}, {.mask = o.mask, .scale = o.scale}, where);
    const Node out = linear("out", merge_heads(y, where), {.width = width, .bias = o.out_bias}, where);
    g.pop_scope();
    return out;
  }

 private:
  static constexpr std::int64_t key_heads(const DecoderAttention& o) { return o.kv_heads == 0 ? o.heads : o.kv_heads; }
  static constexpr std::int64_t dim_of_head(const DecoderAttention& o, std::int64_t width) {
    return o.head_dim == 0 ? width / o.heads : o.head_dim;
  }

  /// Masks and score functions are those of positions; keys are slots.
  constexpr void read_from_cache(Builder& g, AttentionVariant& variant, std::optional<Mask>& mask, Where where) const {
    if (!variant.over_scores)
      g.fail(op::attention, "variant",
             {error_kind::bad_attribute, Text("a cache of keys with ").append(variant.name),
              "softmax attention with any mask or score function, or no cache"},
             where.line());
    const auto moved = [&](const scalar::Function& f) { return ring_ ? detail::in_ring(f) : detail::in_cache(f); };
    mask = Mask{moved(treadle::detail::both(variant.mask, mask).value_or(causal).function)} & detail::kept_queries;
    if (ring_) mask = *mask & detail::filled_slots;
    variant.mask.reset();
    if (variant.score) variant.score = moved(*variant.score);
  }

  DecoderInputs inputs_;
  bool ring_ = false;
  Node slots_, last_;
};

/// In an encoder's graph: the keys and values that the layers of a decoder make of `memory`, as outputs cross_k and
/// cross_v [layers, batch, key heads, seq, head_dim]: what fills the states of these names. Parameters
/// `scope`.i.`leaf`.k and .v.
constexpr void output_cross_attention(std::string_view scope, std::int64_t layers, std::string_view leaf, Node memory,
                                      std::int64_t kv_heads, std::int64_t head_dim, bool bias) {
  Builder& g = *memory.builder;
  const RepeatResult r = repeat(scope, layers, memory, [&](Iteration& it, Node x) {
    g.push_scope(leaf);
    it.side("cross_k", split_heads(linear("k", x, {.width = kv_heads * head_dim, .bias = bias}), kv_heads));
    it.side("cross_v", split_heads(linear("v", x, {.width = kv_heads * head_dim, .bias = bias}), kv_heads));
    g.pop_scope();
    return x;
  });
  if (r.sides.size() < 2) return;
  g.output("cross_k", r.sides[0]);
  g.output("cross_v", r.sides[1]);
}

}  // namespace treadle::models

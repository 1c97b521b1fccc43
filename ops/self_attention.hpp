#pragma once
// Layers of attention: projections, heads, any variant of attention, and the output projection.

#include <treadle/ops/qk_norm.hpp>
#include <treadle/ops/variant.hpp>

namespace treadle {

struct SelfAttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  ///< 0: as many as heads
  std::int64_t head_dim = 0;  ///< 0: width / heads
  std::optional<Mask> mask{};
  AttentionVariant variant{};               ///< softmax attention, or what ops/variants.hpp names
  bool bias = true;                         ///< of the projections
  std::optional<RopeOptions> rope{};        ///< rotary positions of queries and keys
  std::optional<QkNormOptions> qk_norm{};   ///< of queries and keys, before rope
  std::optional<scalar::Function> score{};  ///< as in AttentionOptions, as are those below
  std::optional<double> scale{}, softcap{};
  Node score_bias{};           ///< AttentionOptions.bias, for example t5_bias
  bool sink = false;           ///< one learned logit a head, parameter `sinks` [heads]
  std::int64_t value_dim = 0;  ///< width of a head's values; 0: head_dim
};

/// Projections q, k, v, attention over heads, and the output projection. x [B, N, W], memory [B, M, Wm]; the same for
/// self-attention.
constexpr Node cross_attention(std::string_view leaf, Node x, Node memory, SelfAttentionOptions o = {},
                               Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x) || !b.usable(memory)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto width = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  if (!width) {
    b.fail(op::attention, leaf, {error_kind::wrong_width, "a width unknown at compile time", "a number"}, where.line());
    return {&b, {}};
  }
  if (o.heads < 1 || (o.head_dim == 0 && *width % o.heads != 0)) {
    b.fail(op::attention, leaf,
           {error_kind::heads_do_not_divide_width, Text().append(o.heads).append(" heads"),
            Text("a divisor of width ").append(*width)},
           where.line());
    return {&b, {}};
  }
  const std::int64_t kv_heads = o.kv_heads == 0 ? o.heads : o.kv_heads,
                     head_dim = o.head_dim == 0 ? *width / o.heads : o.head_dim;
  if (kv_heads < 1 || o.heads % kv_heads != 0) {
    b.fail(op::attention, leaf,
           {error_kind::heads_do_not_divide, Text().append(kv_heads).append(" key heads"),
            Text("a divisor of ").append(o.heads)},
           where.line());
    return {&b, {}};
  }
  const std::int64_t value_dim = o.value_dim == 0 ? head_dim : o.value_dim;
  if (value_dim < 1 || head_dim < 1) {
    b.fail(op::attention, leaf,
           {error_kind::bad_attribute, Text("head_dim ").append(head_dim).append(", value_dim ").append(value_dim),
            "at least 1 each"},
           where.line());
    return {&b, {}};
  }
  b.push_scope(leaf);
  Node q = split_heads(linear("q", x, {.width = o.heads * head_dim, .bias = o.bias}, where), o.heads, "", where);
  Node k = split_heads(linear("k", memory, {.width = kv_heads * head_dim, .bias = o.bias}, where), kv_heads, "", where);
  const Node v =
      split_heads(linear("v", memory, {.width = kv_heads * value_dim, .bias = o.bias}, where), kv_heads, "", where);
  if (o.qk_norm && b.usable(v)) {
    const NormalisedHeads n = qk_norm(q, k, *o.qk_norm, where);
    q = n.q;
    k = n.k;
    if (!o.scale) o.scale = n.scale;
  }
  if (o.rope && b.usable(v)) {
    q = rope(q, *o.rope, where);
    k = rope(k, *o.rope, where);
  }
  Node sink{};
  if (o.sink && b.usable(v)) sink = b.parameter("sinks", {b.dim_number(o.heads)}, where);
  const Node y = attend(
      o.variant, {q, k, v, x, memory},
      {.mask = o.mask, .bias = o.score_bias, .sink = sink, .score = o.score, .scale = o.scale, .softcap = o.softcap},
      where);
  const Node out = linear("out", merge_heads(y, where), {.width = *width, .bias = o.bias}, where);
  b.pop_scope();
  return out;
}

constexpr Node self_attention(std::string_view leaf, Node x, SelfAttentionOptions o = {},
                              Where where = Where::current()) {
  return cross_attention(leaf, x, x, o, where);
}

}  // namespace treadle

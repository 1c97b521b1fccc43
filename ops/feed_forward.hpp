#pragma once
// Feed-forward layers: linear, activation, linear (Vaswani et al. 2017, eq. 2), and the gated form (Shazeer 2020).

#include <treadle/ops/linear.hpp>

namespace treadle {

struct FeedForwardOptions {
  std::int64_t hidden = 0;
  treadle::activation activation = relu;
  bool bias = true;
};

/// Parameters `leaf`.up and `leaf`.down. The width of the result is that of x.
constexpr Node ffn(std::string_view leaf, Node x, FeedForwardOptions o, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto width = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  b.push_scope(leaf);
  Node h = activate(linear("up", x, {.width = o.hidden, .bias = o.bias}, where), o.activation, where);
  h = linear("down", h, {.width = width ? *width : 0, .bias = o.bias}, where);
  b.pop_scope();
  return h;
}

struct GatedFeedForwardOptions {
  std::int64_t hidden = 0;
  treadle::activation activation = silu;  ///< silu: SwiGLU; gelu: GeGLU; relu: ReGLU; sigmoid: GLU
  bool bias = false;
};

/// down(activation(gate x) · up x). Parameters `leaf`.gate_proj, `leaf`.up_proj and `leaf`.down_proj. The width of the
/// result is that of x (Shazeer 2020, eq. 5–6).
constexpr Node gated_ffn(std::string_view leaf, Node x, GatedFeedForwardOptions o, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto width = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  b.push_scope(leaf);
  const Node gate = linear("gate_proj", x, {.width = o.hidden, .bias = o.bias}, where),
             up = linear("up_proj", x, {.width = o.hidden, .bias = o.bias}, where);
  Node h{&b, {}};
  if (b.usable(gate) && b.usable(up)) h = multiply(activate(gate, o.activation, where), up, where);
  h = linear("down_proj", h, {.width = width ? *width : 0, .bias = o.bias}, where);
  b.pop_scope();
  return h;
}

}  // namespace treadle

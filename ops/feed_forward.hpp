#pragma once
// The feed-forward layer: linear, activation, linear (Vaswani et al. 2017, eq. 2).

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

}  // namespace treadle

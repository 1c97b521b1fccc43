#pragma once
// Model definitions and nothing else: compiled once per ISA by treadle_add_model, and included by main.cpp.
#include <treadle/treadle.hpp>

namespace my {
using namespace treadle;

inline constexpr auto decaying = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  const Node heads = split_heads(x, 4);
  const auto decay =
      score_mod([](auto score, auto, auto h, auto q, auto k) { return score - 0.1 * (h + 1) * abs(q - k); });
  g.output("y", merge_heads(attention(heads, heads, heads, {.mask = causal, .score = decay})));
  return g.finish();
};
struct Decaying : Model<decaying> {};

}  // namespace my

#pragma once
// A user's file for treadle_add_model: one model with one score function. run.py compiles it for every ISA.

#include <treadle/treadle.hpp>

namespace scored {

using namespace treadle;

inline constexpr auto slopes =
    score_mod([](auto score, auto, auto h, auto q, auto k) { return score - lookup("slopes", h) * abs(q - k); });
inline constexpr auto graph = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 512});
  AttentionOptions options;
  options.score = slopes;
  const auto heads = [&](std::string_view name) { return split_heads(linear(name, x, {.width = 512}), 8); };
  const Node q = heads("q"), k = heads("k"), v = heads("v");
  g.input("slopes", f32, {8});
  g.output("y", linear("out", merge_heads(attention(q, k, v, options)), {.width = 512}));
  return g.finish();
};
struct Scored : Model<graph> {};

}  // namespace scored

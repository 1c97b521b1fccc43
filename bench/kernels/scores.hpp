#pragma once
// The score functions of scores_bench.cpp, compiled for each ISA by treadle_add_model.

#include <treadle/treadle.hpp>

namespace scores_bench {

using namespace treadle;

inline constexpr auto alibi_score = score_mod([](auto score, auto, auto h, auto q, auto k) {
  return score - lookup("slopes", h) * abs(q + (length(k) - length(q)) - k);
});
inline constexpr auto softcap_score =
    score_mod([](auto score, auto, auto, auto, auto) { return 20.0 * tanh(score / 20.0); });

/// Keys of another group than the query's; with groups of neighbours that differ, no tile is full or empty.
inline constexpr auto other_group =
    mask_mod([](auto, auto, auto q, auto k) { return lookup<i32>("groups", q) != lookup<i32>("groups", k); });

/// One head of attention, with or without a score function and a mask.
constexpr Graph graph(std::int64_t head_dim, const scalar::Function* score, bool masked = false) {
  Builder g;
  const Node q = g.input("q", f32, {1, 1, seq, head_dim}), k = g.input("k", f32, {1, 1, seq, head_dim}),
             v = g.input("v", f32, {1, 1, seq, head_dim});
  AttentionOptions options;
  if (score != nullptr) options.score = *score;
  if (masked) options.mask = other_group;
  if (score == &alibi_score) g.input("slopes", f32, {1});
  if (masked) g.input("groups", i32, {seq});
  g.output("y", attention(q, k, v, options));
  return g.finish();
}

inline constexpr auto alibi_graph = [] { return graph(64, &alibi_score); };
inline constexpr auto softcap_graph = [] { return graph(64, &softcap_score); };
struct Alibi : Model<alibi_graph> {};
struct Softcap : Model<softcap_graph> {};

}  // namespace scores_bench

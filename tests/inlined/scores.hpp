#pragma once
// Models with score functions of every kind, compiled for each ISA by treadle_add_model (tests/CMakeLists.txt).

#include <treadle/treadle.hpp>

#include <limits>

namespace treadle::test {

/// The graph of one attention over q [batch, 3, n, 16], k and v [batch, 3, m, 16].
constexpr Node scored(Builder& g, const scalar::Function& score, std::optional<Mask> mask = {}) {
  const Node q = g.input("q", f32, {batch, 3, dim("n"), 16});
  const Node k = g.input("k", f32, {batch, 3, dim("m"), 16}), v = g.input("v", f32, {batch, 3, dim("m"), 16});
  return attention(q, k, v, {.mask = mask, .score = score});
}

inline constexpr auto alibi_graph = [] {
  Builder g;
  g.output("y", scored(g, score_mod([](auto score, auto, auto h, auto q, auto k) {
                         return score - 0.25 * (h + 1) * abs(q + (length(k) - length(q)) - k);
                       })));
  return g.finish();
};
struct Alibi : Model<alibi_graph> {};

inline constexpr auto softcap_graph = [] {
  Builder g;
  g.output("y", scored(g, score_mod([](auto score, auto, auto, auto, auto) { return 1.5 * tanh(score / 1.5); }),
                       causal & window(40, 0)));
  return g.finish();
};
struct Softcap : Model<softcap_graph> {};

/// Tables of rank 1 and 2, of numbers and integers, by the head, the query, the key and the distance, inside and
/// outside.
inline constexpr auto tables_graph = [] {
  Builder g;
  g.input("slopes", f32, {3});
  g.input("of_query", f32, {dim("n")});
  g.input("of_key", i32, {dim("m")});
  g.input("distance", f32, {7});
  g.input("by_head", f32, {3, 9});
  g.input("paragraph", i32, {4, 3});
  g.output("y", scored(g, score_mod([](auto score, auto b, auto h, auto q, auto k) {
                         return score * lookup("slopes", h) + lookup("of_query", q) +
                                lookup("distance", min(max(q - k, -3), 3) + 3) +
                                lookup("by_head", h, min(abs(q - k), 8)) +
                                where(lookup<i32>("of_key", k) == lookup<i32>("paragraph", q % 4, b), 0.5, -0.25);
                       })));
  return g.finish();
};
struct LookupTables : Model<tables_graph> {};

/// Integers: division and modulo of either sign and by zero, min, max, abs, comparisons, logic; a score of −inf.
inline constexpr auto integers_graph = [] {
  Builder g;
  g.output("y", scored(g, score_mod([](auto score, auto b, auto h, auto q, auto k) {
                         const auto far = (q - k) / 3, cell = (k - q) % (h - 1), turn = max(min(q * 5 - k, 40), -k);
                         const auto hole = (((q + k) % 7 == 3) & !(h == 1)) | (turn != turn * 1 + (k - k));
                         return where(hole & (k >= 2), -std::numeric_limits<double>::infinity(),
                                      score + 0.125 * far - 0.5 * cell + 0.01 * abs(-turn) + 0.1 * b +
                                          where((q < k) & (q + 9 >= k), 0.75, 0.0));
                       })));
  return g.finish();
};
struct Integers : Model<integers_graph> {};

/// Every function of numbers; parts that depend on one position alone; NaN that is not chosen.
inline constexpr auto functions_graph = [] {
  Builder g;
  g.output("y", scored(g, score_mod([](auto score, auto, auto h, auto q, auto k) {
                         const auto of_query = log(0.5 * q + 1.0) + sigmoid(0.1 * q), of_key = sqrt(k + 0.5) * 0.1;
                         const auto bent = exp(-abs(score)) + log(score * score + 0.5) - sigmoid(score);
                         const auto root = where(score < 0.0, 0.0, sqrt(score));
                         return max(min(bent + of_query, 3.0), of_key) / (h + 1.5) - min(root, 1.0) +
                                1e-6 * floor(score * 2.0) +
                                where(score <= of_key, tanh(of_key) - of_key, tanh(score) - score);
                       }),
                       window(9, 30)));
  return g.finish();
};
struct Functions : Model<functions_graph> {};

/// Integers that need 64 bits, which the inlined code does not have.
inline constexpr auto wide_graph = [] {
  Builder g;
  g.output("y", scored(g, score_mod([](auto score, auto, auto, auto q, auto k) {
                         return score + 0.5 * ((q + 1) * 3000000000 / (k + 1) % 2);
                       })));
  return g.finish();
};
struct Wide : Model<wide_graph> {};

/// A function of the key alone; two layers, one with the function of another model; the place of a repeat.
inline constexpr auto layers_graph = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 3, dim("n"), 16});
  const Node k = g.input("k", f32, {batch, 3, dim("m"), 16}), v = g.input("v", f32, {batch, 3, dim("m"), 16});
  const Node a = attention(q, k, v, {.score = score_mod([](auto, auto, auto, auto, auto j) { return 0.5 * (j % 3); })});
  const Node b = attention(
      a, k, v, {.score = score_mod([](auto score, auto, auto, auto, auto) { return 1.5 * tanh(score / 1.5); })});
  const Node c = repeat("r", 3, b, [&](Node x) {
    return attention(x, k, v, {.score = score_mod([](auto score, auto, auto, auto, auto j) {
                                 return score * (iteration(j) + 1) - 0.01 * j;
                               })});
  });
  g.output("y", c);
  return g.finish();
};
struct Layers : Model<layers_graph> {};

}  // namespace treadle::test

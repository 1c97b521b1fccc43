// Three ways to score a query against keys, on the same inputs.

#include "chapter.hpp"

#include <fmt/format.h>

#include <cmath>

namespace textbook {
namespace {

using namespace treadle;

struct Sizes {
  std::int64_t queries = 1, keys = 3, width = 3;
};

/// v_a · tanh(W_s q_i + W_h k_j) from elementary nodes, [1, 1, queries, keys]: the queries get a dim of size 1 where
/// the keys vary, the keys one where the queries vary, and the sum broadcasts to [1, queries, keys, width].
Node additive(Node q, Node k, std::int64_t width) {
  const Node queries = transpose(split_heads(linear("W_s", q, {.width = width, .bias = false}), 1), {0, 2, 1, 3});
  const Node keys = split_heads(linear("W_h", k, {.width = width, .bias = false}), 1);
  const Node hidden = activate(queries + keys, activation::tanh);
  return transpose(linear("v_a", hidden, {.width = 1, .bias = false}), {0, 3, 1, 2});
}

/// Weights of the three, and their outputs over values that are the keys.
Graph three(Sizes s) {
  Builder g;
  const Node q = g.input("q", f32, {1, s.queries, s.width}), k = g.input("k", f32, {1, s.keys, s.width});
  const Node queries = split_heads(q, 1), keys = split_heads(k, 1);  // one head: [1, 1, length, width]
  const Node projected = split_heads(linear("W", k, {.width = s.width, .bias = false}), 1);
  const double factor = 1 / std::sqrt(static_cast<double>(s.width));

  const Node by_sum = softmax(additive(q, k, s.width));
  const Node by_matrix = softmax(matmul(queries, transpose(projected)));
  const Node by_product = softmax(scale(matmul(queries, transpose(keys)), factor));
  g.output("additive", by_sum);
  g.output("multiplicative", by_matrix);
  g.output("scaled", by_product);
  g.output("additive_out", matmul(by_sum, keys));
  g.output("multiplicative_out", matmul(by_matrix, keys));
  g.output("scaled_out", matmul(by_product, keys));
  // The same as layers of the library, which have no output of weights.
  g.output("additive_layer", additive_attention("bahdanau", q, k, k, {.width = s.width}));
  g.output("multiplicative_layer", bilinear_attention("luong", q, k, k));
  g.output("scaled_node", attention(queries, keys, keys, {.scale = factor}));
  return g.finish();
}

/// Parameters of both forms, what is written out and the layers.
Parameters parameters_of(std::int64_t width, const Numbers& w, const Numbers& w_s, const Numbers& w_h,
                         const Numbers& v_a) {
  Parameters p;
  for (const char* name : {"W.weight", "luong.key.weight"}) p.own(name, {width, width}, w);
  for (const char* name : {"W_s.weight", "bahdanau.query.weight"}) p.own(name, {width, width}, w_s);
  for (const char* name : {"W_h.weight", "bahdanau.key.weight"}) p.own(name, {width, width}, w_h);
  p.own("v_a.weight", {1, width}, v_a);
  p.own("bahdanau.score.weight", {width}, v_a);
  return p;
}

/// W_s = W_h = I, W = factor · I and v_a = [1, 1, 1].
Parameters identities(float factor) {
  Numbers w = identity(3);
  for (float& x : w) x *= factor;
  return parameters_of(3, w, identity(3), identity(3), {1, 1, 1});
}

/// The weights of one query, a line for each key.
std::string side_by_side(const Tensors& r, std::int64_t query, std::int64_t keys) {
  std::string s =
      fmt::format("  {:>5}  {:>8}  {:>14}  {:>18}", "key", "additive", "multiplicative", "scaled dot-product");
  const auto weight = [&](const char* name, std::int64_t j) {
    return row(r.at(name), query, keys)[static_cast<std::size_t>(j)];
  };
  for (std::int64_t j = 0; j < keys; ++j)
    s += fmt::format("\n  {:>5}  {:>8.4f}  {:>14.4f}  {:>18.4f}", j + 1, weight("additive", j),
                     weight("multiplicative", j), weight("scaled", j));
  return s;
}

void write(Page& page, const Target& target) {
  const Tensors by_hand{{"q", {1, 0, 1}}, {"k", {1, 0, 1, 0, 1, 1, 1, 1, 0}}};
  const Tensors r = run(target, three({}), by_hand, identities(1));
  page.figure("  Weights for W_s = W_h = W = I, v_a = [1,1,1]:\n" + side_by_side(r, 0, 3) + "\n");
  page.as_printed("additive: weights", r.at("additive"), "0.2223 0.3888 0.3888");
  page.as_printed("multiplicative: weights", r.at("multiplicative"), "0.5761 0.2119 0.2119");
  page.as_printed("scaled dot-product: weights", r.at("scaled"), "0.4711 0.2645 0.2645");
  page.as_printed("additive: output", r.at("additive_out"), "0.6112 0.7777 0.6112");
  page.as_printed("multiplicative: output", r.at("multiplicative_out"), "0.7881 0.4239 0.7881");
  page.as_printed("scaled dot-product: output", r.at("scaled_out"), "0.7355 0.5289 0.7355");

  // W = I / √d_k makes the second the third.
  const Tensors same = run(target, three({}), by_hand, identities(1 / std::sqrt(3.0f)));
  page.rounding("|multiplicative with W = I/√d_k − scaled|",
                largest_difference(same.at("multiplicative"), r.at("scaled")), 1e-6);

  // Random inputs and matrices: 4 queries, 6 keys, width 8.
  const auto matrix = [](std::uint64_t seed) {
    Numbers m = normal(64, seed);
    for (float& x : m) x /= std::sqrt(8.0f);
    return m;
  };
  const Sizes sizes{.queries = 4, .keys = 6, .width = 8};
  const Tensors random = run(target, three(sizes), {{"q", normal(32, 41)}, {"k", normal(48, 42)}},
                             parameters_of(8, matrix(43), matrix(44), matrix(45), normal(8, 46)));
  page.figure("  Weights of one of four random queries over six random keys of width 8, random W_s, W_h, W, v_a:\n" +
              side_by_side(random, 0, sizes.keys) + "\n");
  page.rounding("random: |layer − written out|, additive",
                largest_difference(random.at("additive_layer"), random.at("additive_out")), 1e-5);
  page.rounding("random: |layer − written out|, multiplicative",
                largest_difference(random.at("multiplicative_layer"), random.at("multiplicative_out")), 1e-5);
  page.rounding("random: |attention node − written out|, scaled",
                largest_difference(random.at("scaled_node"), random.at("scaled_out")), 1e-6);
  page.note(
      "with identities the additive score prefers the keys that differ from the query: tanh saturates where both\n"
      "are 1. It is W_s, W_h and v_a, once learned, that make it a measure of likeness.");
}

}  // namespace

const Chapter chapter::scores = {
    "scores", "Additive, multiplicative and scaled dot-product scores",
    "q = [1,0,1], rows of K [1,0,1] [0,1,1] [1,1,0] as in chapter 1, values = keys, d_k = 3\n"
    "additive v_aᵀ tanh(W_s q + W_h k), multiplicative qᵀ W k, scaled dot-product qᵀ k / √d_k",
    "Bahdanau et al. 2015, eq. 5-6; Luong et al. 2015, eq. 8; Vaswani et al. 2017, eq. 1", write};

}  // namespace textbook

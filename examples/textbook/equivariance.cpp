// Attention does not see an order: permuted tokens give permuted outputs, unless positions tell them apart.

#include "chapter.hpp"

#include <treadle/backends/random_fill.hpp>

#include <cmath>
#include <numeric>

namespace textbook {
namespace {

using namespace treadle;

constexpr std::int64_t tokens = 24, width = 32;

enum class Order { none, positions, causal_mask };

/// f(P X) and P f(X) for one layer f of self-attention. Both are elements of one batch, so that both have the same
/// parameters.
Graph layer(Order order) {
  Builder g;
  const Node x = g.input("x", f32, {1, tokens, width}), permutation = g.input("permutation", f32, {tokens, tokens});
  Node both = concatenate({x, matmul(permutation, x)}, 0);
  if (order == Order::positions) both = both + sinusoidal_positions();
  SelfAttentionOptions options{.heads = 4};
  if (order == Order::causal_mask) options.mask = causal;
  const Node y = self_attention("attn", both, options);
  g.output("permuted_after", matmul(permutation, slice(y, 0, 0, 1)));  // P f(X)
  g.output("permuted_before", slice(y, 0, 1, 1));                      // f(P X)
  return g.finish();
}

/// Row i of the matrix picks token p(i): a shuffle by Fisher and Yates.
Numbers permutation_matrix(std::uint64_t seed) {
  std::vector<std::size_t> p(tokens);
  std::iota(p.begin(), p.end(), std::size_t{0});
  for (std::size_t i = p.size() - 1; i > 0; --i) std::swap(p[i], p[splitmix64(seed, i) % (i + 1)]);
  Numbers m(tokens * tokens, 0.0f);
  for (std::size_t i = 0; i < p.size(); ++i) m[i * tokens + p[i]] = 1;
  return m;
}

/// ‖f(P X) − P f(X)‖ / ‖P f(X)‖
double distance(const Target& target, Order order) {
  const Graph g = layer(order);
  const Tensors r = run(target, g, {{"x", normal(tokens * width, 31)}, {"permutation", permutation_matrix(32)}},
                        Parameters::random(g.view(), 33));
  const Numbers &a = r.at("permuted_before"), &b = r.at("permuted_after");
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

void write(Page& page, const Target& target) {
  page.rounding("without positions: ‖f(P X) − P f(X)‖ / ‖P f(X)‖", distance(target, Order::none), 1e-6);
  page.more_than("with sinusoidal positions", distance(target, Order::positions), 0.1, 3);
  page.more_than("without positions, with a causal mask", distance(target, Order::causal_mask), 0.1, 3);
}

}  // namespace

const Chapter chapter::equivariance = {
    "equivariance", "Without positions, order is not seen",
    "f = one layer of self-attention (4 heads, random parameters), P a permutation of 24 tokens\n"
    "f(P X) = P f(X) without positions; a causal mask is an order, too",
    "Vaswani et al. 2017, §3.5; Yun et al. 2020, claim 1", write};

}  // namespace textbook

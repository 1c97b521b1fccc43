#pragma once
// The model that most chapters run.

#include <treadle/treadle.hpp>

namespace textbook {

struct DotProduct {
  std::int64_t heads = 1, queries = 1, keys = 1, width = 1, value_width = 1;
  double scale = 1;
  bool causal = false;
};

/// Attention twice over the same q [1, heads, queries, width], k and v.
///
/// `out` is the attention node, which never has a matrix of weights. So that weights can be looked at, `weights` is the
/// softmax written out from nodes, and `written_out` its product with v; the passes leave these alone because the
/// softmax is read by an output. `products` is q kᵀ.
inline treadle::Graph dot_product(const DotProduct& d) {
  using namespace treadle;
  Builder g;
  const Node q = g.input("q", f32, {1, d.heads, d.queries, d.width});
  const Node k = g.input("k", f32, {1, d.heads, d.keys, d.width});
  const Node v = g.input("v", f32, {1, d.heads, d.keys, d.value_width});
  const Node products = matmul(q, transpose(k));
  Node scores = scale(products, d.scale);
  if (d.causal) scores = scores + mask_to_bias(mask_node(g, causal, d.queries, d.keys));
  const Node weights = softmax(scores);
  g.output("products", products);
  g.output("weights", weights);
  g.output("written_out", matmul(weights, v));
  AttentionOptions options{.scale = d.scale};
  if (d.causal) options.mask = causal;
  g.output("out", attention(q, k, v, options));
  return g.finish();
}

}  // namespace textbook

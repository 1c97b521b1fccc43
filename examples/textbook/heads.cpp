// Two heads that see the same tokens through two projections.

#include "chapter.hpp"

namespace textbook {
namespace {

using namespace treadle;

/// Two heads of width 2 over two tokens of width 2; unscaled, no output projection.
Graph two_heads() {
  Builder g;
  const Node x = g.input("x", f32, {1, 2, 2});
  const Node q = split_heads(linear("q", x, {.width = 4, .bias = false}), 2);
  const Node k = split_heads(linear("k", x, {.width = 4, .bias = false}), 2);
  const Node v = split_heads(linear("v", x, {.width = 4, .bias = false}), 2);
  g.output("heads", attention(q, k, v, {.scale = 1.0}));             // [1, heads, tokens, 2]
  g.output("out", merge_heads(attention(q, k, v, {.scale = 1.0})));  // [1, tokens, heads · 2]
  g.output("weights", softmax(matmul(q, transpose(k))));             // [1, heads, tokens, tokens]
  return g.finish();
}

void write(Page& page, const Target& target) {
  Parameters parameters;
  // Rows 0 and 1 are head 1's projection, the identity; rows 2 and 3 are head 2's, which swaps the coordinates.
  for (const char* name : {"q.weight", "k.weight", "v.weight"}) parameters.own(name, {4, 2}, {1, 0, 0, 1, 0, 1, 1, 0});
  const Tensors r = run(target, two_heads(), {{"x", identity(2)}}, parameters);
  page.as_printed("weights of head 1, both rows", row(r.at("weights"), 0, 4), "0.731 0.269 0.269 0.731");
  page.as_printed("weights of head 2, both rows", row(r.at("weights"), 1, 4), "0.731 0.269 0.269 0.731");
  page.as_printed("output of head 2, both rows", row(r.at("heads"), 1, 4), "0.269 0.731 0.731 0.269");
  page.as_printed("token 1: head 1, head 2", row(r.at("out"), 0, 4), "0.731 0.269 0.269 0.731");
  page.as_printed("token 2: head 1, head 2", row(r.at("out"), 1, 4), "0.269 0.731 0.731 0.269");
}

}  // namespace

const Chapter chapter::heads = {"heads", "Two heads: identity and swap",
                                "X = I, W_Q = W_K = W_V = I in head 1 and [0,1] [1,0] in head 2, unscaled\n"
                                "MultiHead(X) = [softmax(Q₁K₁ᵀ)V₁, softmax(Q₂K₂ᵀ)V₂]",
                                "Vaswani et al. 2017, §3.2.2", write};

}  // namespace textbook

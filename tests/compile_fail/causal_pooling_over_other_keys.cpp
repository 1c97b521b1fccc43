// expect: model_has_shape_mismatch<.*leaf<17>\{"pooled_attention"\}.*memory keys.*as many as queries: seq.*line\{11\}
#include <treadle/ops/pooled_attention.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 16});
  const Node k = g.input("k", f32, {batch, 4, dim("memory"), 16});
  g.output("y", pooled_attention(q, k, k, {.ratio = 4, .causal = true}));
  return g.finish();
};
struct Bad : Declared<bad> {};

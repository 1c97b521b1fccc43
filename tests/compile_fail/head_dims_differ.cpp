// expect: model_has_query_and_key_head_dims_that_differ<.*in_op<10>\{"attention"\}.*key 16.*query 32.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 32}), k = g.input("k", f32, {batch, 4, seq, 16});
  g.output("y", attention(q, k, k));
  return g.finish();
};
struct Bad : Declared<bad> {};

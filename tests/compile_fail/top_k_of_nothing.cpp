// expect: model_has_a_bad_attribute<.*top_k 0.*at least 1.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 8}), k = g.input("k", f32, {batch, 4, seq, 8});
  g.output("y", attention_top_k(attention(q, k, k), 0).weights);
  return g.finish();
};
struct Bad : Declared<bad> {};

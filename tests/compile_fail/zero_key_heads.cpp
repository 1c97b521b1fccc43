// expect: model_has_heads_that_do_not_divide_the_heads<.*0 key heads.*a divisor of 4.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 8}), k = g.input("k", f32, {batch, 0, seq, 8});
  g.output("y", attention(q, k, k));
  return g.finish();
};
struct Bad : Declared<bad> {};

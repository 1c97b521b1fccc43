// expect: model_has_heads_that_do_not_divide_the_heads<.*leaf<5>\{"attn"\}.*3 key heads.*a divisor of 8.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", self_attention("attn", x, {.heads = 8, .kv_heads = 3}));
  return g.finish();
};
struct Bad : Declared<bad> {};

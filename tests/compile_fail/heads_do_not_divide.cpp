// expect: model_has_heads_that_do_not_divide_the_width<.*leaf<5>\{"attn"\}.*scope<4>\{"h.#"\}.*7 heads.*a divisor of width 64.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", repeat("h", 2, x, [](Node y) { return y + self_attention("attn", y, {.heads = 7}); }));
  return g.finish();
};
struct Bad : Declared<bad> {};

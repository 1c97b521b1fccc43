// expect: model_has_a_function_that_cannot_be_traced<.*"mask".*if or \?: on a traced value.*where\(condition, a, b\).*line\{15\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto sliding = mask_mod([](auto, auto, auto q, auto k) {
  if (k > q) return false;
  return true;
});

inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 48});
  g.output("y", self_attention("attn", x, {.heads = 4, .mask = sliding}));
  return g.finish();
};
struct Bad : Declared<bad> {};

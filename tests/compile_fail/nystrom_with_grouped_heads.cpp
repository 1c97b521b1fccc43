// expect: model_has_heads_that_do_not_divide_the_heads<.*leaf<18>\{"nystrom_attention"\}.*2 key heads for 4.*a key head for each query head.*line\{11\}
#include <treadle/ops/nystrom.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 16});
  const Node k = g.input("k", f32, {batch, 2, seq, 16});
  g.output("y", nystrom_attention(q, k, k, {.landmarks = 8}));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_bad_attribute<.*leaf<8>\{"variant"\}.*scope<5>\{"attn"\}.*a mask with linear.*the causal mask or none.*line\{11\}
#include <treadle/graph/builder.hpp>
#include <treadle/ops/variants.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", self_attention("attn", x, {.heads = 8, .mask = window(8, 0), .variant = variants::linear()}));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_bad_attribute<.*leaf<8>\{"experts"\}.*in_op<4>\{"moe"\}.*top_k 5.*1 to 4 experts.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", moe("experts", x, {.experts = 4, .top_k = 5, .hidden = 128}));
  return g.finish();
};
struct Bad : Declared<bad> {};

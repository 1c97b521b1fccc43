// expect: model_has_a_bad_attribute<.*in_op<4>\{"map"\}.*a feature map with a table.*a function of its.*line\{11\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 2, seq, 8});
  const auto f = feature_map([](auto x) { return x * lookup("slopes", iteration(x)); });
  g.output("y", linear_attention(q, q, q, {.feature_map = f}));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_bad_attribute<.*in_op<5>\{"rope"\}.*rotary_dim 5.*an even number from 2 to head_dim 8.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 2, seq, 8});
  g.output("y", rope(q, {.rotary_dim = 5}));
  return g.finish();
};
struct Bad : Declared<bad> {};

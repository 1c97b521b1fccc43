// expect: model_has_a_bad_attribute<.*in_op<5>\{"rope"\}.*the factor of the scaling.*a finite factor of at least 1.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 2, seq, 8});
  g.output("y", rope(q, {.scaling = linear_scaling(0.5)}));
  return g.finish();
};
struct Bad : Declared<bad> {};

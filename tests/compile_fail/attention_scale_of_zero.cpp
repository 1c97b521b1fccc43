// expect: model_has_a_bad_attribute<.*in_op<10>\{"attention"\}.*scale 0.*a finite scale other than 0.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 8}), k = g.input("k", f32, {batch, 4, seq, 8});
  g.output("y", attention(q, k, k, {.scale = 0.0}));
  return g.finish();
};
struct Bad : Declared<bad> {};

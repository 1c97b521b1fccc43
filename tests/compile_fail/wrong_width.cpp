// A residual of another width than the layer's.
// expect: model_has_shape_mismatch<.*\[batch, seq, 96\].*\[batch, seq, 64\].*line\{11\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", add(x, linear("up", x, {.width = 96})));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_shape_mismatch<.*in_op<9>\{"constant"\}.*3 numbers.*as many as.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {seq, 4});
  g.output("y", x + constant(g, {4}, {1, 2, 3}));
  return g.finish();
};
struct Bad : Declared<bad> {};

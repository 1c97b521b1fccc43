// expect: model_has_shape_mismatch<.*in_op<8>\{"reshape"\}.*batch, seq, 3, 5.*as many elements as.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 16});
  g.output("y", reshape(x, {batch, seq, 3, 5}));
  return g.finish();
};
struct Bad : Declared<bad> {};

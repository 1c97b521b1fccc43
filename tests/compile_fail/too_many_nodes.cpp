// expect: model_has_more_nodes_than_its_capacity<
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  Node x = g.input("x", f32, {batch, seq, 8});
  for (int i = 0; i < 40; ++i) x = add(x, x);
  g.output("y", x);
  return g.finish();
};
struct Bad : Declared<bad, 32> {};

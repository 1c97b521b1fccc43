// expect: model_has_a_wrong_rank<.*in_op<5>\{"pool"\}.*\[seq\].*length, width.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {seq});
  g.output("y", mean_pooling(x));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_wrong_dtype<.*in_op<7>\{"gather"\}.*f32.*i32 or i64 ids.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 16}), ids = g.input("ids", f32, {4});
  g.output("y", gather(x, ids, {.axis = 1}));
  return g.finish();
};
struct Bad : Declared<bad> {};

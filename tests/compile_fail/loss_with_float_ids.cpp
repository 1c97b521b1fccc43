// expect: model_has_a_wrong_dtype<.*in_op<14>\{"cross_entropy"\}.*f32.*i32 or i64 ids.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, 10}), ids = g.input("ids", f32, {batch});
  g.output("loss", cross_entropy(x, ids));
  return g.finish();
};
struct Bad : Declared<bad> {};

// "sqe" is the dim of no input: a slip of the pen.
// expect: model_has_an_unknown_dim<.*in_op<6>\{"slice"\}.*got<4>\{"sqe"\}.*expected<11>\{"batch, seq"\}.*line\{11\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", slice(x, 1, 0, dim("sqe")));
  return g.finish();
};
struct Bad : Declared<bad> {};

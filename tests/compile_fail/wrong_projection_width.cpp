// A weight that exists already, applied to a wrong width.
// expect: model_has_wrong_width<.*in_op<7>\{"linear"\}.*got<4>\{"128"\}.*expected<4>\{"256"\}.*line\{12\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 128});
  const Node table = g.parameter("table.weight", {g.dim_number(1000), g.dim_number(256)});
  g.output("y", linear_with(x, table));
  return g.finish();
};
struct Bad : Declared<bad> {};

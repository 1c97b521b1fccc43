// expect: model_has_a_repeat_that_changes_the_shape<.*leaf<2>\{"h"\}.*\[batch, seq, 96\].*\[batch, seq, 64\].*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", repeat("h", 2, x, [](Node y) { return linear("up", y, {.width = 96}); }));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_duplicate_name<.*leaf<9>\{"q.weight"\}.*in_op<10>\{"parameter"\}.*a name not used before.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", linear("q", linear("q", x, {.width = 64}), {.width = 64}));
  return g.finish();
};
struct Bad : Declared<bad> {};

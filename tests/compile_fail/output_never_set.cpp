// expect: model_has_no_output<.*no output.*g.output\(name, node\).*line\{11\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  linear("q", x, {.width = 64});
  return g.finish();
};
struct Bad : Declared<bad> {};

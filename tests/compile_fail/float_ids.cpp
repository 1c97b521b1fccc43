// expect: model_has_a_wrong_dtype<.*leaf<4>\{"wte"\}.*in_op<10>\{"embedding"\}.*f32.*i32 or i64 ids.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq});
  g.output("y", embedding("wte", x, {.vocabulary = 100, .width = 8}));
  return g.finish();
};
struct Bad : Declared<bad> {};

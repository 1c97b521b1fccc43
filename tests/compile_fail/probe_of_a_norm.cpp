// expect: model_has_a_bad_attribute<.*a probe of rms_norm.*the result of attention.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 8});
  g.output("y", attention_entropy(rms_norm("norm", x)));
  return g.finish();
};
struct Bad : Declared<bad> {};

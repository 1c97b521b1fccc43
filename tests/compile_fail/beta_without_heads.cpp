// expect: model_has_shape_mismatch<.*in_op<20>\{"recurrent_attention"\}.*beta \[batch, seq\].*\[batch, 2, seq\].*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 2, seq, 8}), beta = g.input("beta", f32, {batch, seq});
  g.output("y", delta_rule(q, q, q, beta));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_mask_of_wrong_rank<.*in_op<5>\{"mask"\}.*rank 1.*rank 2 to 4.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 32}), keep = g.input("keep", boolean, {seq});
  g.output("y", attention(q, q, q, {.mask_tensor = keep}));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_bad_attribute<.*"mask".*a sum over features.*a sum in a score function.*line\{13\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto near =
    mask_mod([](auto, auto, auto q, auto k) { return sum(q, [&](auto i) { return q[i] * k[i]; }) > 0; });

inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 48});
  g.output("y", self_attention("attn", x, {.heads = 4, .mask = near}));
  return g.finish();
};
struct Bad : Declared<bad> {};

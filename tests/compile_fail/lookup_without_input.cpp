// expect: model_has_a_lookup_without_an_input<.*in_op<5>\{"mask"\}.*lookup .*document.*the name of an input.*line\{10\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto bad = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  g.output("y", self_attention("attn", x, {.heads = 4, .mask = causal & documents("document")}));
  return g.finish();
};
struct Bad : Declared<bad> {};

// expect: model_has_a_function_that_cannot_be_traced<.*"score".*a && b.*a & b.*line\{13\}
#include <treadle/graph/builder.hpp>

#include "model.hpp"

using namespace treadle;
inline constexpr auto near =
    score_mod([](auto score, auto, auto, auto q, auto k) { return where(k <= q && k >= q - 4, score, score - 1.0); });

inline constexpr auto bad = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 4, seq, 32});
  g.output("y", attention(q, q, q, {.score = near}));
  return g.finish();
};
struct Bad : Declared<bad> {};

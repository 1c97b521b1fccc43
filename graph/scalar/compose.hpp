#pragma once
// One score function after another, as one function.

#include <treadle/graph/scalar/function.hpp>

namespace treadle::scalar {

/// second(first(score)): `second` sees the result of `first` in place of the score. Whatever could not be traced in
/// either is handed on.
constexpr Function then(const Function& first, const Function& second) {
  if (first.empty() || first.misuse != Misuse::none) return first;
  if (second.empty() || second.misuse != Misuse::none) return second;
  Pool pool;
  const int score = first.add_to(pool);
  const View from = second.view();
  std::vector<int> at;
  for (int i = 0; i <= second.root(); ++i) {  // children stand before their parents
    Node n = from[i];
    if (n.op == Op::score) {
      at.push_back(score);
      continue;
    }
    if (n.a >= 0) n.a = at[static_cast<std::size_t>(n.a)];
    if (n.b >= 0) n.b = at[static_cast<std::size_t>(n.b)];
    if (n.c >= 0) n.c = at[static_cast<std::size_t>(n.c)];
    if (reads_table(n.op)) n.name_first = pool.intern_name(from.name(n));
    at.push_back(pool.intern(n));
  }
  return {pool, at.back()};
}

/// softcap(50) >> alibi(8): the left one first.
constexpr Function operator>>(const Function& first, const Function& second) { return then(first, second); }

}  // namespace treadle::scalar

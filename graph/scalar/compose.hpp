#pragma once
// One score function after another, and functions seen from other positions.

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

/// f where query q stands at query(b, q) and key k at key(b, k), both counted from the first token: what the rows of a
/// cache are, whose order is data. The lengths of queries and keys agree then, so that alignment has nothing to do.
template <class Query, class Key>
constexpr Function at_positions(const Function& f, Query&& query, Key&& key) {
  if (f.empty() || f.misuse != Misuse::none) return f;
  Tracing t;
  const Symbol at_q = query(t.b, t.q), at_k = key(t.b, t.k);
  const int length = build::leaf(t.pool, Op::k_len);
  const View from = f.view();
  std::vector<int> at;
  for (int i = 0; i <= f.root(); ++i) {  // children stand before their parents
    Node n = from[i];
    if (n.op == Op::q || n.op == Op::k || n.op == Op::q_len) {
      at.push_back(n.op == Op::q ? at_q.node : n.op == Op::k ? at_k.node : length);
      continue;
    }
    if (n.a >= 0) n.a = at[static_cast<std::size_t>(n.a)];
    if (n.b >= 0) n.b = at[static_cast<std::size_t>(n.b)];
    if (n.c >= 0) n.c = at[static_cast<std::size_t>(n.c)];
    if (reads_table(n.op)) n.name_first = t.pool.intern_name(from.name(n));
    at.push_back(t.pool.intern(n));
  }
  return {t.pool, at.back()};
}

/// softcap(50) >> alibi(8): the left one first.
constexpr Function operator>>(const Function& first, const Function& second) { return then(first, second); }

}  // namespace treadle::scalar

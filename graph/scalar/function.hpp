#pragma once
// A traced function as a small literal value, for the attributes of nodes: no heap, so it may stand in a consteval
// model.
//
//   self_attention("attn", x, {.heads = 12, .score = score_mod([](auto score, auto b, auto h, auto q, auto k) { … })})

#include <treadle/graph/scalar/trace.hpp>

#include <array>

namespace treadle::scalar {

/// A function in a pool of fixed capacity. Longer ones belong in a Pool, or in a table that is looked up.
struct Function {
  static constexpr int max_nodes = 64, max_chars = 128;

  std::array<Node, max_nodes> nodes{};
  std::array<char, max_chars> names{};
  std::int32_t node_count = 0, char_count = 0;  ///< the root is the last node
  Misuse misuse = Misuse::none;                 ///< anything else: the function could not be traced

  constexpr Function() = default;
  constexpr Function(const Pool& from, int root) : misuse(from.misuse) {
    Pool pool;
    const int last = import(pool, from, root);
    if (last + 1 > max_nodes || static_cast<int>(pool.names.size()) > max_chars)
      fail("a function in an attribute has at most 64 nodes and 128 characters of table names: use a lookup table");
    node_count = last + 1;
    char_count = static_cast<std::int32_t>(pool.names.size());
    for (int i = 0; i < node_count; ++i) nodes[static_cast<std::size_t>(i)] = pool[i];
    for (int i = 0; i < char_count; ++i) names[static_cast<std::size_t>(i)] = pool.names[static_cast<std::size_t>(i)];
  }

  constexpr bool empty() const { return node_count == 0; }
  constexpr explicit operator bool() const { return !empty(); }
  constexpr int root() const { return node_count - 1; }
  constexpr View view() const {
    check(misuse);
    return stored();
  }
  /// The root of the same function in `pool`. Hands its misuse on.
  constexpr int add_to(Pool& pool) const {
    if (empty()) fail("there is no function to add: it was never set");
    if (pool.misuse == Misuse::none) pool.misuse = misuse;
    return import(pool, stored(), root());
  }
  friend constexpr bool operator==(const Function&, const Function&) = default;

 private:
  constexpr View stored() const {
    return {{nodes.data(), static_cast<std::size_t>(node_count)}, {names.data(), static_cast<std::size_t>(char_count)}};
  }
};

/// f(score, b, h, q, k): the new score.
template <class F>
constexpr Function score_mod(F&& f) {
  Tracing t;
  const int root = t.number(f(t.score, t.b, t.h, t.q, t.k));
  return {t.pool, root};
}

/// f(x): an elementwise function.
template <class F>
constexpr Function feature_map(F&& f) {
  Tracing t;
  const int root = t.number(f(t.x));
  return {t.pool, root};
}

}  // namespace treadle::scalar

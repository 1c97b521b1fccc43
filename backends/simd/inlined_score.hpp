#pragma once
// A score function as straight SIMD code: the expression is a constant of the compiler, and every node becomes the
// operation that the tile evaluator (graph/scalar/tile_engine.hpp) would run over arrays, so that the bits are the
// same.
//
// `F` is a tag with the frozen expression: `nodes` (children first, the root is last). Constants and what depends on
// the query alone are computed before the loop over keys, what depends on the key alone once per key.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/lane_operations.hpp>

#include <limits>
#include <span>

namespace treadle::simd {

/// Whether StraightCode knows every operation of the function.
constexpr bool inlinable(std::span<const scalar::Node> nodes) {
  for (const scalar::Node& n : nodes) {
    switch (n.op) {
      using enum scalar::Op;
      case constant:
      case score:
      case x:
      case b:
      case h:
      case q:
      case k:
      case q_len:
      case k_len:
      case iteration:
      case lookup:
      case number:
      case neg:
      case add:
      case sub:
      case mul:
      case div:
      case fma:
      case min:
      case max:
      case abs:
      case floor_div:
      case floor_mod:
      case exp:
      case log:
      case tanh:
      case sqrt:
      case sigmoid:
      case floor:
      case less:
      case less_equal:
      case equal:
      case not_equal:
      case logic_and:
      case logic_or:
      case logic_not:
      case where: break;
      default: return false;
    }
  }
  return !nodes.empty();
}

template <class Isa, class F, int Vectors>
class StraightCode {
 public:
  /// `program` is F, compiled and bound, not wide.
  [[gnu::always_inline]] StraightCode(const scalar::TileProgram& program, std::int64_t b, std::int64_t h,
                                      std::int64_t q0)
      : p_(program), b_(static_cast<Int>(b)), h_(static_cast<Int>(h)), q0_(static_cast<Int>(q0)) {
    each<Class::constant>([&](auto i)
                              __attribute__((always_inline)) { constants_[at<i>] = evaluate<i, 0>(nullptr, L{}); });
    each<Class::q_only>([&](auto i) __attribute__((always_inline)) {
      unroll<Vectors>([&](auto v)
                          __attribute__((always_inline)) { queries_[at<i>][v] = evaluate<i, v>(nullptr, L{}); });
    });
  }

  [[gnu::always_inline]] void key(std::int64_t k) {
    k_ = static_cast<Int>(k);
    each<Class::k_only>([&](auto i) __attribute__((always_inline)) { keys_[at<i>] = evaluate<i, 0>(nullptr, L{}); });
  }

  /// The new scores of vector V of queries and the last key().
  template <int V>
  [[gnu::always_inline]] Vec<Isa> element(Vec<Isa> score) const {
    L elements[count(Class::both, size) + 1];
    each<Class::both>([&](auto i)
                          __attribute__((always_inline)) { elements[at<i>] = evaluate<i, V>(elements, L(score)); });
    return value<size - 1, V>(elements).vec();
  }

 private:
  using L = Lanes<Isa>;
  using V_ = Vec<Isa>;
  using Class = scalar::Class;
  using Op = scalar::Op;
  using Type = scalar::Type;
  using Int = std::int32_t;
  using Operations = LaneOperations<Isa>;
  static constexpr int width = V_::width;
  static constexpr int size = static_cast<int>(F::nodes.size());

  static constexpr scalar::Node node(int i) { return F::nodes[static_cast<std::size_t>(i)]; }
  static constexpr Class class_at(int i) { return scalar::class_of(node(i)); }
  static constexpr int count(Class c, int end) {
    int n = 0;
    for (int i = 0; i < end; ++i) n += class_at(i) == c ? 1 : 0;
    return n;
  }
  /// Where a node's value is among those of its class.
  template <int I>
  static constexpr int at = count(class_at(I), I);

  /// f(Constant<i>) for every node of a class, children first.
  template <Class C, class Body>
  [[gnu::always_inline]] static void each(Body&& body) {
    unroll<size>([&](auto i) __attribute__((always_inline)) {
      if constexpr (class_at(i) == C) body(i);
    });
  }

  template <int I, int V>
  [[gnu::always_inline]] L value(const L* elements) const {
    if constexpr (class_at(I) == Class::constant)
      return constants_[at<I>];
    else if constexpr (class_at(I) == Class::q_only)
      return queries_[at<I>][V];
    else if constexpr (class_at(I) == Class::k_only)
      return keys_[at<I>];
    else
      return elements[at<I>];
  }

  template <int I, int V>
  [[gnu::always_inline]] L evaluate(const L* elements, L score) const {
    constexpr scalar::Node n = node(I);
    if constexpr (n.op == Op::constant) {
      if constexpr (n.type == Type::number)
        return V_(static_cast<float>(n.number()));
      else if constexpr (n.type == Type::integer)
        return L::all(static_cast<Int>(n.integer()));
      else
        return L::all(n.integer() != 0 ? -1 : 0);
    } else if constexpr (n.a < 0) {
      return leaf<n.op, V>(score);
    } else if constexpr (n.op == Op::lookup) {
      constexpr int second = n.b >= 0 ? n.b : n.a;
      return gather<I>(value<n.a, V>(elements), value<second, V>(elements));
    } else if constexpr (n.b < 0) {
      return Operations::template unary<n.op, n.type>(value<n.a, V>(elements));
    } else if constexpr (n.op == Op::div && n.type == Type::number && node(n.b).op == Op::constant) {
      return simd::divide(value<n.a, V>(elements).vec(), static_cast<float>(node(n.b).number()));
    } else if constexpr (n.c < 0) {
      return Operations::template binary<n.op, node(n.a).type>(value<n.a, V>(elements), value<n.b, V>(elements));
    } else {
      const L a = value<n.a, V>(elements), b = value<n.b, V>(elements), c = value<n.c, V>(elements);
      if constexpr (n.op == Op::fma)
        return fma(a.vec(), b.vec(), c.vec());
      else
        return L(a.bits ? b.bits : c.bits);
    }
  }

  template <Op O, int V>
  [[gnu::always_inline]] L leaf(L score) const {
    const scalar::Extents& e = p_.extents;
    if constexpr (O == Op::score || O == Op::x)
      return score;
    else if constexpr (O == Op::b)
      return L::all(b_);
    else if constexpr (O == Op::h)
      return L::all(h_);
    else if constexpr (O == Op::q)
      return L::count_from(q0_ + V * width);
    else if constexpr (O == Op::k)
      return L::all(k_);
    else if constexpr (O == Op::q_len)
      return L::all(static_cast<Int>(e.q_len));
    else if constexpr (O == Op::k_len)
      return L::all(static_cast<Int>(e.k_len));
    else
      return L::all(static_cast<Int>(e.iteration));
  }

  /// The table's entries at (row, column); a table of rank 1 has rows alone. What all lanes share is read once.
  template <int I>
  [[gnu::always_inline]] L gather(L row, L column) const {
    constexpr Class c = class_at(I);
    const TensorView& table = p_.slots[static_cast<std::size_t>(p_.tables[static_cast<std::size_t>(I)])].table.view;
    const auto read = [&](Int i, Int j) {
      if constexpr (node(I).type == Type::integer)
        return static_cast<Int>(scalar::read_integer(table, i, j));
      else
        return std::bit_cast<Int>(scalar::read_number(table, i, j));
    };
    if constexpr (c == Class::constant || c == Class::k_only)
      return L::all(read(row.bits[0], column.bits[0]));
    else
      return Operations::each_lane(row, column, read);
  }

  const scalar::TileProgram& p_;
  Int b_, h_, q0_, k_ = 0;
  L constants_[count(Class::constant, size) + 1], queries_[count(Class::q_only, size) + 1][Vectors],
      keys_[count(Class::k_only, size) + 1];
};

namespace detail {
template <class Isa, class F, int Vectors>
[[gnu::flatten]] void score_lanes(const kernel::ScoreTile& tile) {
  using V = Vec<Isa>;
  const kernel::ScoreTile t = tile;  // a store of scores might change what is behind the reference
  StraightCode<Isa, F, Vectors> code(*t.program, t.b, t.h, t.q0);
  V top[Vectors];
  unroll<Vectors>([&](auto v) __attribute__((always_inline)) { top[v] = V::load(t.top + v * V::width); });
  for (std::int64_t j = 0; j < t.keys; ++j) {
    code.key(t.k0 + j);
    unroll<Vectors>([&](auto v) __attribute__((always_inline)) {
      float* at = t.scores + j * Vectors * V::width + v * V::width;
      V x = code.template element<v>(V::load(at)) * V(1.44269504f);
      if (t.bits != nullptr)
        x = select(mask_from_bits<Isa>(t.bits[j] >> (v * V::width)), x, V(-std::numeric_limits<float>::infinity()));
      x.store(at);
      top[v] = max(x, top[v]);  // in this order NaN does not stay
    });
  }
  unroll<Vectors>([&](auto v) __attribute__((always_inline)) { top[v].store(t.top + v * V::width); });
}
}  // namespace detail

/// A kernel::ScoreHook.
template <class Isa, class F>
void inlined_score(const kernel::ScoreTile& t) {
  with_vectors<Isa, most_vectors<Isa>>(t.ld, [&](auto vectors) { detail::score_lanes<Isa, F, vectors>(t); });
}

}  // namespace treadle::simd

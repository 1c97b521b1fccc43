#pragma once
// Symbolic derivatives of traced functions: again expressions of the same pool, for backward passes and for reports.
//
//   const int root = trace_score(pool, [](auto score, auto, auto h, auto q, auto k) {
//     return 30 * tanh(score / 30) - lookup("slopes", h) * abs(q - k);
//   });
//   derivative(pool, root, build::leaf(pool, Op::score))      // 1 − tanh²(score / 30)
//   for (int table : lookups(pool, root)) derivative(pool, root, table);      // −abs(q − k)
//
// Integers and conditions are piecewise constant, so their derivative is 0, floor's too. Where a function has a kink it
// has one of its one-sided derivatives or their mean: abs has 0 at 0; min and max at a tie have 0 if one operand alone
// depends on the variable (so max(x, 0) is a ReLU with derivative 0 at 0) and the mean if both do; where() has that of
// the branch that it takes. sqrt has infinity at 0 and log 1 / 0, as calculus has it.

#include <treadle/graph/scalar/build.hpp>

namespace treadle::scalar {

namespace detail {

/// Forward mode, node by node; −1 stands for 0, so that nothing is multiplied by it.
struct Differentiator {
  Pool& pool;
  int wrt;

  constexpr int number(Op op, int a, int b = -1, int c = -1) const {
    return pool.intern({.op = op, .type = Type::number, .a = a, .b = b, .c = c});
  }
  constexpr int zero_if_none(int d) const { return d < 0 ? pool.constant(0.0) : d; }
  constexpr int plus(int a, int b) const { return a < 0 ? b : b < 0 ? a : number(Op::add, a, b); }
  constexpr int times(int d, int factor) const { return d < 0 ? -1 : number(Op::mul, d, factor); }
  constexpr int choose(int condition, int a, int b) const {
    return a < 0 && b < 0 ? -1 : number(Op::where, condition, zero_if_none(a), zero_if_none(b));
  }
  constexpr int below(int a, int b) const {
    return pool.intern({.op = Op::less, .type = Type::boolean, .a = a, .b = b});
  }

  /// a wins over b where `a_wins` holds.
  constexpr int extremum(int a_wins, int b_wins, int da, int db) const {
    if (db < 0) return choose(a_wins, da, -1);
    if (da < 0) return choose(b_wins, db, -1);
    const int tie = number(Op::mul, number(Op::add, da, db), pool.constant(0.5));
    return number(Op::where, a_wins, da, number(Op::where, b_wins, db, tie));
  }

  /// Of node i, from those of its children.
  constexpr int step(int i, const std::vector<int>& of) const {
    const Node n = pool[i];
    if (i == wrt) return pool.constant(1.0);
    if (n.type != Type::number) return -1;
    const int da = n.a >= 0 ? of[static_cast<std::size_t>(n.a)] : -1;
    const int db = n.b >= 0 ? of[static_cast<std::size_t>(n.b)] : -1;
    const int dc = n.c >= 0 ? of[static_cast<std::size_t>(n.c)] : -1;
    if (da < 0 && db < 0 && dc < 0) return -1;
    switch (n.op) {
      case Op::neg: return number(Op::neg, da);
      case Op::add: return plus(da, db);
      case Op::sub: return db < 0 ? da : plus(da, number(Op::neg, db));
      case Op::mul: return plus(times(da, n.b), times(db, n.a));
      case Op::fma: return plus(plus(times(da, n.b), times(db, n.a)), dc);
      case Op::div: {  // (da − (a / b) db) / b
        const int turned = db < 0 ? -1 : number(Op::neg, number(Op::mul, db, i));
        return number(Op::div, plus(da, turned), n.b);
      }
      case Op::min: return extremum(below(n.a, n.b), below(n.b, n.a), da, db);
      case Op::max: return extremum(below(n.b, n.a), below(n.a, n.b), da, db);
      case Op::abs: {
        const int zero = pool.constant(0.0);
        return choose(below(n.a, zero), number(Op::neg, da), choose(below(zero, n.a), da, -1));
      }
      case Op::where: return choose(n.a, db, dc);
      case Op::exp: return times(da, i);
      case Op::log: return number(Op::div, da, n.a);
      case Op::tanh: return times(da, number(Op::sub, pool.constant(1.0), number(Op::mul, i, i)));
      case Op::sqrt: return number(Op::div, da, number(Op::mul, i, pool.constant(2.0)));
      case Op::sigmoid: return times(da, number(Op::mul, i, number(Op::sub, pool.constant(1.0), i)));
      // By one entry of a sum where the variable has one for each feature; by all terms where it has not.
      case Op::sum: return (pool[wrt].uses & uses_feature) != 0 ? da : number(Op::sum, da);
      default: return -1;
    }
  }
};

}  // namespace detail

/// The derivative of the function at `root` with respect to the number at node `wrt`, everything else held: the score,
/// x, one lookup, or any other number below `root`. Two lookups are two variables even if they read one table; the
/// gradient of an entry is the sum over the places that read it. Inside a sum, a variable of one feature (q[i], k[i],
/// lookup("v", i)) has a derivative that depends on i, for the feature i that it stands for.
constexpr int derivative(Pool& pool, int root, int wrt) {
  if (wrt < 0 || pool[wrt].type != Type::number)
    fail("only a number is a variable: the score, x, q[i], k[i] or a lookup<f32>");
  std::vector<char> reached;
  for (int i = 0; i <= root; ++i) reached.push_back(i == root);
  for (int i = root; i >= 0; --i)
    for (int j = 0; j < 3; ++j)
      if (const int child = pool[i].child(j); child >= 0 && reached[static_cast<std::size_t>(i)])
        reached[static_cast<std::size_t>(child)] = 1;
  const detail::Differentiator differentiate{pool, wrt};
  std::vector<int> of;
  for (int i = 0; i <= root; ++i) of.push_back(reached[static_cast<std::size_t>(i)] ? differentiate.step(i, of) : -1);
  return differentiate.zero_if_none(of[static_cast<std::size_t>(root)]);
}

/// The lookups of numbers below `root`, children first.
constexpr std::vector<int> lookups(View view, int root) {
  std::vector<char> reached;
  for (int i = 0; i <= root; ++i) reached.push_back(i == root);
  std::vector<int> found;
  for (int i = root; i >= 0; --i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    for (int j = 0; j < 3; ++j)
      if (const int child = view[i].child(j); child >= 0) reached[static_cast<std::size_t>(child)] = 1;
  }
  for (int i = 0; i <= root; ++i)
    if (reached[static_cast<std::size_t>(i)] && view[i].op == Op::lookup && view[i].type == Type::number)
      found.push_back(i);
  return found;
}

}  // namespace treadle::scalar

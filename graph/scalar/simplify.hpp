#pragma once
// Simplification at intern: constants folded, neutral elements dropped, one canonical order for commutative operands.
//
// The rules keep integer and boolean results exactly, and number results up to the sign of zero and the payload of NaN.
// exp, log, tanh and sqrt of constants are left to the evaluators, so that one definition of them serves everybody.
// Include expression.hpp, which includes this.

#include <treadle/graph/scalar/expression.hpp>

namespace treadle::scalar {

constexpr int Pool::share(Node node) {
  switch (node.op) {
    case Op::q:
    case Op::query_value: node.uses = uses_q; break;
    case Op::k:
    case Op::key_value: node.uses = uses_k; break;
    case Op::score:
    case Op::x: node.uses = uses_score; break;
    case Op::feature: node.uses = uses_feature; break;
    case Op::b: node.uses = uses_b; break;
    case Op::h: node.uses = uses_h; break;
    case Op::lookup:
    case Op::searchsorted: node.uses = uses_table; break;
    default: node.uses = 0;
  }
  for (int i = 0; i < 3; ++i)
    if (node.child(i) >= 0) node.uses |= (*this)[node.child(i)].uses;
  if (node.op == Op::sum) node.uses &= static_cast<std::uint8_t>(~uses_feature);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i] == node) return static_cast<int>(i);
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

constexpr std::int32_t Pool::intern_name(std::string_view name) {
  const std::string_view all(names.data(), names.size());
  if (const auto found = all.find(name); found != std::string_view::npos) return static_cast<std::int32_t>(found);
  const auto first = static_cast<std::int32_t>(names.size());
  for (char c : name) names.push_back(c);
  return first;
}

namespace detail {

/// A total order that depends on the structure only, not on the pool. Constants come last.
constexpr int compare(const View v, int i, int j) {
  while (i != j) {
    const Node& x = v[i];
    const Node& y = v[j];
    if (x.is_constant() != y.is_constant()) return x.is_constant() ? 1 : -1;
    if (x.op != y.op) return x.op < y.op ? -1 : 1;
    if (x.type != y.type) return x.type < y.type ? -1 : 1;
    if (x.is_constant() && x.type == Type::number && x.number() != y.number()) return x.number() < y.number() ? -1 : 1;
    if (x.bits != y.bits) return x.bits < y.bits ? -1 : 1;
    if (const int names = v.name(x).compare(v.name(y)); names != 0) return names < 0 ? -1 : 1;
    // Equal nodes share an index, so at most the first child that differs needs a look.
    int child = 0;
    while (child < 2 && x.child(child) == y.child(child)) ++child;
    const int p = x.child(child), q = y.child(child);
    if (p < 0 || q < 0) return p < q ? -1 : 1;
    i = p;
    j = q;
  }
  return 0;
}

/// Groups that an and-chain or or-chain is built from: what can be computed once per query or per key is not mixed with
/// what costs per element.
constexpr int chain_group(const Node& n) {
  if (n.uses & uses_score) return 3;
  return ((n.uses & uses_q) ? 1 : 0) + ((n.uses & uses_k) ? 2 : 0);
}

constexpr void flatten(const Pool& pool, Op op, int root, std::vector<int>& out) {
  if (pool[root].op == op) {
    flatten(pool, op, pool[root].a, out);
    flatten(pool, op, pool[root].b, out);
  } else {
    out.push_back(root);
  }
}

constexpr bool before(const Pool& pool, int i, int j) {
  const int gi = chain_group(pool[i]), gj = chain_group(pool[j]);
  return gi != gj ? gi < gj : compare(pool, i, j) < 0;
}

constexpr void sort_unique(const Pool& pool, std::vector<int>& v) {
  // Merge sort: lists of global tokens may be long.
  std::vector<int> other;
  for (std::size_t i = 0; i < v.size(); ++i) other.push_back(0);
  for (std::size_t width = 1; width < v.size(); width *= 2) {
    for (std::size_t first = 0; first < v.size(); first += 2 * width) {
      const std::size_t middle = first + width < v.size() ? first + width : v.size();
      const std::size_t last = first + 2 * width < v.size() ? first + 2 * width : v.size();
      std::size_t i = first, j = middle;
      for (std::size_t out = first; out < last; ++out)
        other[out] = i < middle && (j >= last || !before(pool, v[j], v[i])) ? v[i++] : v[j++];
    }
    v.swap(other);
  }
  std::size_t n = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    if (n == 0 || v[n - 1] != v[i]) v[n++] = v[i];
  while (v.size() > n) v.pop_back();
}

/// y is written as the negation of x.
constexpr bool complements(const Pool& pool, int x, int y) {
  const Node& a = pool[x];
  const Node& b = pool[y];
  if (a.op == Op::logic_not) return a.a == y;
  if (a.op == Op::equal) return b.op == Op::not_equal && a.a == b.a && a.b == b.b;
  if (a.op == Op::less) return b.op == Op::less_equal && a.a == b.b && a.b == b.a && pool[a.a].type == Type::integer;
  return false;
}

constexpr int make(Pool& pool, Op op, Type type, int a, int b = -1, int c = -1) {
  return pool.intern({.op = op, .type = type, .a = a, .b = b, .c = c});
}

}  // namespace detail

/// The conjunction (or disjunction) of any number of conditions, in canonical order; `true` (`false`) of none.
constexpr int chain(Pool& pool, Op op, const std::vector<int>& parts) {
  const bool neutral = op == Op::logic_and;
  std::vector<int> leaves;
  for (int p : parts) detail::flatten(pool, op, p, leaves);
  std::vector<int> kept;
  for (int p : leaves) {
    if (!pool[p].is_constant())
      kept.push_back(p);
    else if ((pool[p].integer() != 0) != neutral)
      return pool.constant(!neutral);
  }
  detail::sort_unique(pool, kept);
  if (kept.empty()) return pool.constant(neutral);
  for (int p : kept)
    for (int other : kept)
      if (detail::complements(pool, p, other)) return pool.constant(!neutral);
  int root = -1;
  for (std::size_t i = 0; i < kept.size();) {
    const int group = detail::chain_group(pool[kept[i]]);
    int part = kept[i++];
    while (i < kept.size() && detail::chain_group(pool[kept[i]]) == group)
      part = pool.share({.op = op, .type = Type::boolean, .a = part, .b = kept[i++]});
    root = root < 0 ? part : pool.share({.op = op, .type = Type::boolean, .a = root, .b = part});
  }
  return root;
}

namespace detail {

constexpr double floor_of(double v) {
  if (!(v > -9.0e15 && v < 9.0e15)) return v;  // an integer already, or not a finite number
  const double t = static_cast<double>(static_cast<std::int64_t>(v));
  return t > v ? t - 1 : t;
}

constexpr bool foldable(Op op) {
  switch (op) {
    case Op::exp:
    case Op::log:
    case Op::tanh:
    case Op::sqrt:
    case Op::sigmoid:
    case Op::fma:
    case Op::lookup:
    case Op::searchsorted:
    case Op::sum:
    case Op::query_value:
    case Op::key_value: return false;
    default: return true;
  }
}

constexpr int fold_numbers(Pool& pool, const Node& n, double x, double y) {
  switch (n.op) {
    case Op::neg: return pool.constant(-x);
    case Op::abs: return pool.constant(x < 0 ? -x : x);
    case Op::floor: return pool.constant(floor_of(x));
    case Op::add: return pool.constant(x + y);
    case Op::sub: return pool.constant(x - y);
    case Op::mul: return pool.constant(x * y);
    case Op::div: return y == 0 ? -1 : pool.constant(x / y);  // not a constant expression by zero
    case Op::min: return pool.constant(y < x ? y : x);
    case Op::max: return pool.constant(x < y ? y : x);
    case Op::less: return pool.constant(x < y);
    case Op::less_equal: return pool.constant(x <= y);
    case Op::equal: return pool.constant(x == y);
    case Op::not_equal: return pool.constant(x != y);
    default: return -1;
  }
}

constexpr int fold_integers(Pool& pool, const Node& n, std::int64_t x, std::int64_t y) {
  switch (n.op) {
    case Op::number: return pool.constant(static_cast<double>(x));
    case Op::neg: return pool.constant(wrap_sub(0, x));
    case Op::abs: return pool.constant(x < 0 ? wrap_sub(0, x) : x);
    case Op::add: return pool.constant(wrap_add(x, y));
    case Op::sub: return pool.constant(wrap_sub(x, y));
    case Op::mul: return pool.constant(wrap_mul(x, y));
    case Op::floor_div: return pool.constant(floor_div(x, y));
    case Op::floor_mod: return pool.constant(floor_mod(x, y));
    case Op::min: return pool.constant(y < x ? y : x);
    case Op::max: return pool.constant(x < y ? y : x);
    case Op::less: return pool.constant(x < y);
    case Op::less_equal: return pool.constant(x <= y);
    case Op::equal: return pool.constant(x == y);
    case Op::not_equal: return pool.constant(x != y);
    default: return -1;
  }
}

constexpr bool is(const Node& n, double v) {
  if (!n.is_constant() || n.type == Type::boolean) return false;
  return n.type == Type::number ? n.number() == v : static_cast<double>(n.integer()) == v;
}

/// A constant whose sign can be turned, so that `x + -3` is written `x - 3`.
constexpr bool is_negative(const Node& n) {
  if (!n.is_constant()) return false;
  return n.type == Type::number ? n.number() < 0 : n.integer() < 0 && wrap_sub(0, n.integer()) > 0;
}

constexpr int simplify_arithmetic(Pool& pool, const Node& n) {
  const Node x = pool[n.a];
  const Node y = n.b >= 0 ? pool[n.b] : Node{};
  const bool numbers = n.type == Type::number;
  switch (n.op) {
    case Op::neg:
      if (x.op == Op::neg) return x.a;
      break;
    case Op::abs:
      if (x.op == Op::abs) return n.a;
      if (x.op == Op::neg) return make(pool, Op::abs, n.type, x.a);
      break;
    case Op::floor:
      if (x.op == Op::floor || x.op == Op::number) return n.a;
      break;
    case Op::add:
      if (is(y, 0)) return n.a;
      if (is_negative(y)) return make(pool, Op::sub, n.type, n.a, make(pool, Op::neg, n.type, n.b));
      if (y.op == Op::neg) return make(pool, Op::sub, n.type, n.a, y.a);
      if (x.op == Op::neg) return make(pool, Op::sub, n.type, n.b, x.a);
      // One rounding instead of two wherever a·b + c is written: the numeric contract of every evaluator.
      if (numbers && x.op == Op::mul) return make(pool, Op::fma, n.type, x.a, x.b, n.b);
      if (numbers && y.op == Op::mul) return make(pool, Op::fma, n.type, y.a, y.b, n.a);
      break;
    case Op::sub:
      if (is(y, 0)) return n.a;
      if (n.a == n.b && !numbers) return pool.constant(std::int64_t{0});
      if (is(x, 0)) return make(pool, Op::neg, n.type, n.b);
      if (is_negative(y)) return make(pool, Op::add, n.type, n.a, make(pool, Op::neg, n.type, n.b));
      if (y.op == Op::neg) return make(pool, Op::add, n.type, n.a, y.a);
      if (numbers && x.op == Op::mul) return make(pool, Op::fma, n.type, x.a, x.b, make(pool, Op::neg, n.type, n.b));
      if (numbers && y.op == Op::mul) {
        const bool second = pool[y.b].is_constant();  // turn the constant's sign where there is one
        const int turned = make(pool, Op::neg, n.type, second ? y.b : y.a);
        return make(pool, Op::fma, n.type, second ? y.a : turned, second ? turned : y.b, n.a);
      }
      break;
    case Op::mul:
      if (is(y, 1)) return n.a;
      if (is(y, -1)) return make(pool, Op::neg, n.type, n.a);
      if (is(y, 0) && !numbers) return n.b;
      break;
    case Op::div:
    case Op::floor_div:
      if (is(y, 1)) return n.a;
      break;
    case Op::floor_mod:
      if (is(y, 1)) return pool.constant(std::int64_t{0});
      break;
    case Op::min:
    case Op::max:
      if (n.a == n.b) return n.a;
      break;
    case Op::fma: {
      const Node z = pool[n.c];
      if (is(y, 1)) return make(pool, Op::add, n.type, n.a, n.c);
      if (is(y, -1)) return make(pool, Op::sub, n.type, n.c, n.a);
      if (is(z, 0)) return make(pool, Op::mul, n.type, n.a, n.b);
      break;
    }
    default: break;
  }
  return -1;
}

constexpr int simplify_condition(Pool& pool, const Node& n) {
  switch (n.op) {
    case Op::logic_and:
    case Op::logic_or: {
      std::vector<int> parts;
      parts.push_back(n.a);
      parts.push_back(n.b);
      return chain(pool, n.op, parts);
    }
    case Op::logic_not: {
      const Node x = pool[n.a];
      if (x.is_constant()) return pool.constant(x.integer() == 0);
      if (x.op == Op::logic_not) return x.a;
      if (x.op == Op::equal) return make(pool, Op::not_equal, Type::boolean, x.a, x.b);
      if (x.op == Op::not_equal) return make(pool, Op::equal, Type::boolean, x.a, x.b);
      const bool integers = (x.op == Op::less || x.op == Op::less_equal) && pool[x.a].type == Type::integer;
      if (integers) return make(pool, x.op == Op::less ? Op::less_equal : Op::less, Type::boolean, x.b, x.a);
      return -1;
    }
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal:
      // NaN differs from itself, so only integers decide.
      if (n.a == n.b && pool[n.a].type == Type::integer)
        return pool.constant(n.op == Op::less_equal || n.op == Op::equal);
      return -1;
    case Op::where:
      if (n.b == n.c) return n.b;
      if (pool[n.a].is_constant()) return pool[n.a].integer() != 0 ? n.b : n.c;
      if (pool[n.a].op == Op::logic_not) return make(pool, Op::where, n.type, pool[n.a].a, n.c, n.b);
      return -1;
    default: return -1;
  }
}

}  // namespace detail

constexpr int Pool::intern(Node n) {
  const auto at = [this](int i) { return (*this)[i]; };
  if (n.a >= 0 && detail::foldable(n.op) && n.op != Op::where && at(n.a).is_constant() &&
      (n.b < 0 || at(n.b).is_constant())) {
    const Node x = at(n.a);
    const Node y = n.b >= 0 ? at(n.b) : Node{};
    int folded = -1;
    if (x.type == Type::number) folded = detail::fold_numbers(*this, n, x.number(), y.number());
    if (x.type == Type::integer) folded = detail::fold_integers(*this, n, x.integer(), y.integer());
    if (folded >= 0) return folded;
  }
  switch (n.op) {
    case Op::add:
    case Op::mul:
    case Op::fma:
    case Op::min:
    case Op::max:
    case Op::equal:
    case Op::not_equal:
      if (detail::compare(*this, n.a, n.b) > 0) {
        const std::int32_t a = n.a;
        n.a = n.b;
        n.b = a;
      }
      break;
    default: break;
  }
  if (n.a >= 0) {
    int found = detail::simplify_condition(*this, n);
    if (found < 0) found = detail::simplify_arithmetic(*this, n);
    if (found >= 0) return found;
  }
  return share(n);
}

namespace detail {

constexpr int import_node(Pool& pool, View from, int i, std::vector<int>& target) {
  if (target[static_cast<std::size_t>(i)] >= 0) return target[static_cast<std::size_t>(i)];
  Node n = from[i];
  if (n.a >= 0) n.a = import_node(pool, from, n.a, target);
  if (n.b >= 0) n.b = import_node(pool, from, n.b, target);
  if (n.c >= 0) n.c = import_node(pool, from, n.c, target);
  if (reads_table(n.op)) n.name_first = pool.intern_name(from.name(from[i]));
  // Simplified where it comes from, by rules and an order that do not depend on the pool.
  return target[static_cast<std::size_t>(i)] = pool.share(n);
}

}  // namespace detail

constexpr int import(Pool& pool, View from, int root) {
  // Depth first, so that equal functions come out in the same order whatever pool they come from.
  std::vector<int> target;
  for (int i = 0; i <= root; ++i) target.push_back(-1);
  return detail::import_node(pool, from, root, target);
}

}  // namespace treadle::scalar

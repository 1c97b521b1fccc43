#pragma once
// Tracing: a lambda is called once with symbols and what it does to them is written down (expression.hpp).
//
//   int root = trace_mask(pool, [](auto b, auto h, auto q, auto k) { return (k <= q) & (q - k < 256); });
//   int root = trace_score(pool, [](auto score, auto b, auto h, auto q, auto k) {
//     return score - lookup("slopes", h) * abs(q - k);
//   });
//   int root = trace_feature(pool, [](auto x) { return where(x > 0, x + 1, exp(x)); });
//
// Symbols know + - * / %, comparisons, & | !, and the functions below, found without a namespace. `q - k` is an
// integer, its
// `/` and `%` round down; an integer that meets a number becomes a number. `if`, `?:`, `&&`, `||` and the functions of
// namespace std cannot be written down: a model with such a function does not compile. Everything is constexpr.

#include <treadle/graph/scalar/build.hpp>

#include <concepts>
#include <type_traits>

namespace treadle::scalar {

struct Condition;

namespace detail {
template <class T>
inline constexpr bool never = false;

constexpr void note(Pool* pool, Misuse m) {
  if (!pool) check(m);
  if (pool->misuse == Misuse::none) pool->misuse = m;
}
}  // namespace detail

/// A traced number or integer. Made by trace_*.
struct Symbol {
  Pool* pool = nullptr;
  int node = -1;

  /// One feature of the query or key row: q[i], k[i], inside sum.
  constexpr Symbol operator[](Symbol i) const;

  /// `if` and `?:` end here: an error that the model reports.
  explicit constexpr operator bool() const {
    detail::note(pool, Misuse::branch);
    return false;
  }
  /// Only so that std::exp(x) and friends stop here with a sentence.
  template <class T = void>
  constexpr operator double() const {
    static_assert(
        detail::never<T>,
        "a traced value has no number: write exp(x), min(a, b), not std::exp(x), std::min(a, b), and no casts");
    return 0;
  }
};

/// A traced truth value.
struct Condition {
  Pool* pool = nullptr;
  int node = -1;

  /// `if` and `?:` end here: an error that the model reports.
  explicit constexpr operator bool() const {
    detail::note(pool, Misuse::branch);
    return false;
  }
};

template <class T>
concept plain_number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
template <class T>
concept numeric = std::same_as<T, Symbol> || plain_number<T>;
template <class T>
concept logical = std::same_as<T, Condition> || std::same_as<T, bool>;
template <class T>
concept traced = std::same_as<T, Symbol> || std::same_as<T, Condition>;

namespace detail {

template <class T>
constexpr Pool* pool_of(const T& v) {
  if constexpr (traced<T>)
    return v.pool;
  else
    return nullptr;
}
template <class... Ts>
constexpr Pool& pool_of_all(const Ts&... v) {
  Pool* pool = nullptr;
  ((pool = pool ? pool : pool_of(v)), ...);
  if (!pool) fail("a symbol that no trace has made cannot be computed with");
  return *pool;
}
template <class T>
constexpr int node_in(Pool& pool, const T& v) {
  if constexpr (std::same_as<T, Symbol> || std::same_as<T, Condition>)
    return v.node;
  else if constexpr (std::same_as<T, bool>)
    return pool.constant(v);
  else if constexpr (std::is_floating_point_v<T>)
    return pool.constant(static_cast<double>(v));
  else
    return pool.constant(static_cast<std::int64_t>(v));
}
template <class A, class B>
constexpr Symbol arithmetic(Op op, const A& a, const B& b) {
  Pool& pool = pool_of_all(a, b);
  const int x = node_in(pool, a);
  return {&pool, build::arithmetic(pool, op, x, node_in(pool, b))};
}
template <class A, class B>
constexpr Condition comparison(Op op, const A& a, const B& b) {
  Pool& pool = pool_of_all(a, b);
  const int x = node_in(pool, a);
  return {&pool, build::comparison(pool, op, x, node_in(pool, b))};
}
template <class A, class B>
constexpr Condition logic(Op op, const A& a, const B& b) {
  Pool& pool = pool_of_all(a, b);
  const int x = node_in(pool, a);
  return {&pool, build::logic(pool, op, x, node_in(pool, b))};
}
constexpr Symbol unary(Op op, Symbol a) {
  Pool& pool = pool_of_all(a);
  return {&pool, build::unary(pool, op, node_in(pool, a))};
}

template <class A, class B>
concept number_pair = numeric<A> && numeric<B> && (traced<A> || traced<B>);
template <class A, class B>
concept condition_pair = logical<A> && logical<B> && (traced<A> || traced<B>);

}  // namespace detail

template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol operator+(const A& a, const B& b) {
  return detail::arithmetic(Op::add, a, b);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol operator-(const A& a, const B& b) {
  return detail::arithmetic(Op::sub, a, b);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol operator*(const A& a, const B& b) {
  return detail::arithmetic(Op::mul, a, b);
}
/// Of two integers: rounded down.
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol operator/(const A& a, const B& b) {
  return detail::arithmetic(Op::div, a, b);
}
/// Of two integers; has the sign of b.
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol operator%(const A& a, const B& b) {
  return detail::arithmetic(Op::floor_mod, a, b);
}
constexpr Symbol operator-(Symbol a) { return detail::unary(Op::neg, a); }
constexpr Symbol operator+(Symbol a) { return a; }

template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Condition operator<(const A& a, const B& b) {
  return detail::comparison(Op::less, a, b);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Condition operator<=(const A& a, const B& b) {
  return detail::comparison(Op::less_equal, a, b);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Condition operator>(const A& a, const B& b) {
  return detail::comparison(Op::less, b, a);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Condition operator>=(const A& a, const B& b) {
  return detail::comparison(Op::less_equal, b, a);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Condition operator==(const A& a, const B& b) {
  return detail::comparison(Op::equal, a, b);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Condition operator!=(const A& a, const B& b) {
  return detail::comparison(Op::not_equal, a, b);
}

template <class A, class B>
  requires detail::condition_pair<A, B>
constexpr Condition operator&(const A& a, const B& b) {
  return detail::logic(Op::logic_and, a, b);
}
template <class A, class B>
  requires detail::condition_pair<A, B>
constexpr Condition operator|(const A& a, const B& b) {
  return detail::logic(Op::logic_or, a, b);
}
constexpr Condition operator!(Condition a) { return {a.pool, build::logic_not(*a.pool, a.node)}; }
/// The same as !, for `~a & b`: compilers warn about `!a & b`.
constexpr Condition operator~(Condition a) { return !a; }

template <class A, class B>
  requires(traced<A> || traced<B>)
constexpr Condition operator&&(const A& a, const B& b) {
  detail::note(detail::pool_of(a) ? detail::pool_of(a) : detail::pool_of(b), Misuse::and_and);
  return a & b;
}
template <class A, class B>
  requires(traced<A> || traced<B>)
constexpr Condition operator||(const A& a, const B& b) {
  detail::note(detail::pool_of(a) ? detail::pool_of(a) : detail::pool_of(b), Misuse::or_or);
  return a | b;
}

constexpr Symbol exp(Symbol a) { return detail::unary(Op::exp, a); }
constexpr Symbol log(Symbol a) { return detail::unary(Op::log, a); }
constexpr Symbol tanh(Symbol a) { return detail::unary(Op::tanh, a); }
constexpr Symbol sqrt(Symbol a) { return detail::unary(Op::sqrt, a); }
constexpr Symbol sigmoid(Symbol a) { return detail::unary(Op::sigmoid, a); }
constexpr Symbol floor(Symbol a) { return detail::unary(Op::floor, a); }
constexpr Symbol abs(Symbol a) { return detail::unary(Op::abs, a); }
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol min(const A& a, const B& b) {
  return detail::arithmetic(Op::min, a, b);
}
template <class A, class B>
  requires detail::number_pair<A, B>
constexpr Symbol max(const A& a, const B& b) {
  return detail::arithmetic(Op::max, a, b);
}

/// a where the condition holds, else b.
template <class C, class A, class B>
  requires(logical<C> && numeric<A> && numeric<B> && (traced<C> || traced<A> || traced<B>))
constexpr Symbol where(const C& condition, const A& a, const B& b) {
  Pool& pool = detail::pool_of_all(condition, a, b);
  const int c = detail::node_in(pool, condition), x = detail::node_in(pool, a);
  return {&pool, build::where(pool, c, x, detail::node_in(pool, b))};
}
template <class C, class A, class B>
  requires(logical<C> && logical<A> && logical<B> && (traced<C> || traced<A> || traced<B>))
constexpr Condition where(const C& condition, const A& a, const B& b) {
  Pool& pool = detail::pool_of_all(condition, a, b);
  const int c = detail::node_in(pool, condition), x = detail::node_in(pool, a);
  return {&pool, build::where(pool, c, x, detail::node_in(pool, b))};
}

/// The entry of a table that is bound by name when the model runs: f32 gives a number, i32 (i32 and boolean tables) an
/// integer. An index outside the table reads 0.
template <DType type = f32, class I>
  requires numeric<I>
constexpr Symbol lookup(std::string_view name, const I& index) {
  static_assert(traced<I>, "a lookup needs an index that depends on the position, the head or the batch element");
  Pool& pool = detail::pool_of_all(index);
  return {&pool, build::lookup(pool, type, name, detail::node_in(pool, index))};
}
template <DType type = f32, class I, class J>
  requires detail::number_pair<I, J>
constexpr Symbol lookup(std::string_view name, const I& row, const J& column) {
  Pool& pool = detail::pool_of_all(row, column);
  const int r = detail::node_in(pool, row);
  return {&pool, build::lookup(pool, type, name, r, detail::node_in(pool, column))};
}

/// How many entries of an ascending i32 table are at most `value`: with cumulative lengths, the number of the sequence
/// that a position lies in (torch.searchsorted with right=True). Tables that do not ascend are refused when they are
/// bound.
template <class I>
  requires numeric<I>
constexpr Symbol searchsorted(std::string_view name, const I& value) {
  static_assert(traced<I>, "searchsorted needs a value that depends on the position, the head or the batch element");
  Pool& pool = detail::pool_of_all(value);
  return {&pool, build::searchsorted(pool, name, detail::node_in(pool, value))};
}
/// The same in one row of a table of rank 2.
template <class I, class J>
  requires detail::number_pair<I, J>
constexpr Symbol searchsorted(std::string_view name, const I& row, const J& value) {
  Pool& pool = detail::pool_of_all(row, value);
  const int r = detail::node_in(pool, row);
  return {&pool, build::searchsorted(pool, name, detail::node_in(pool, value), r)};
}

constexpr Symbol Symbol::operator[](Symbol i) const {
  if (!pool) fail("only q and k have features: write q[i] or k[i] inside sum");
  return {pool, build::feature_of(*pool, (*pool)[node].op, detail::node_in(*pool, i))};
}

/// The sum of f(i) over the features i of q (and k): sum(q, [&](auto i) { return tanh(q[i] + k[i]); }).
template <class F>
constexpr Symbol sum(Symbol q, F&& f) {
  Pool& pool = *q.pool;
  const auto term = f(Symbol{&pool, build::leaf(pool, Op::feature)});
  return {&pool, build::sum(pool, detail::node_in(pool, term))};
}

/// The number of queries or keys, from the position: length(q), length(k).
constexpr Symbol length(Symbol position) {
  const Op op = (*position.pool)[position.node].op;
  if (op != Op::q && op != Op::k) fail("length is that of q or of k");
  return {position.pool, build::leaf(*position.pool, op == Op::q ? Op::q_len : Op::k_len)};
}
/// The index of the enclosing repeat, 0 outside; any symbol will do as the argument.
constexpr Symbol iteration(Symbol any) { return {any.pool, build::leaf(*any.pool, Op::iteration)}; }

/// A lambda is called with the symbols of a pool of its own, so that what simplification drops never reaches the
/// caller's.
struct Tracing {
  Pool pool;
  Symbol score, b, h, q, k, x;

  constexpr Tracing()
      : score(symbol(Op::score)),
        b(symbol(Op::b)),
        h(symbol(Op::h)),
        q(symbol(Op::q)),
        k(symbol(Op::k)),
        x(symbol(Op::x)) {}
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  template <class Result>
  constexpr int condition(const Result& result) {
    static_assert(logical<Result>, "a mask returns a condition, such as k <= q");
    return detail::node_in(pool, result);
  }
  template <class Result>
  constexpr int number(const Result& result) {
    static_assert(numeric<Result>, "a score function or feature map returns a number: write where(condition, a, b)");
    return build::to_number(pool, detail::node_in(pool, result));
  }

 private:
  constexpr Symbol symbol(Op op) { return {&pool, build::leaf(pool, op)}; }
};

/// f(b, h, q, k): may query q see key k? A plain bool is accepted.
template <class F>
constexpr int trace_mask(Pool& pool, F&& f) {
  Tracing t;
  const int root = t.condition(f(t.b, t.h, t.q, t.k));
  check(t.pool.misuse);
  return import(pool, t.pool, root);
}

/// f(score, b, h, q, k): the new score. A plain number is accepted.
template <class F>
constexpr int trace_score(Pool& pool, F&& f) {
  Tracing t;
  const int root = t.number(f(t.score, t.b, t.h, t.q, t.k));
  check(t.pool.misuse);
  return import(pool, t.pool, root);
}

/// f(x): an elementwise function.
template <class F>
constexpr int trace_feature(Pool& pool, F&& f) {
  Tracing t;
  const int root = t.number(f(t.x));
  check(t.pool.misuse);
  return import(pool, t.pool, root);
}

}  // namespace treadle::scalar

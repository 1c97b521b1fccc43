#pragma once
// Traced scalar expressions: small functions of a score, a batch element, a head, a query and a key position, as plain
// data.
//
// A mask (`k <= q`), a score function (`score - slope * (q - k)`) or a feature map (`max(x, 0)`) is traced once into a
// pool of nodes that children precede their parents in. The pool is the only definition: kernels, the oracle, the tile
// classes and the text in a report all come from it. It works in constant evaluation and at run time alike.
//
// Nodes are hash-consed and simplified as they are interned, so within a pool equal functions have the same root.

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace treadle::scalar {

enum class Op : std::uint8_t {
  // Leaves. `feature` is the index of the enclosing sum, `iteration` that of the enclosing repeat.
  constant,
  score,
  b,
  h,
  q,
  k,
  q_len,
  k_len,
  x,
  feature,
  iteration,
  query_value,
  key_value,     ///< q[a], k[a]: one feature of the query or key row, inside a sum
  lookup,        ///< table `name` at index a, or at row a and column b; an index outside the table reads 0
  searchsorted,  ///< how many entries of the ascending table `name` (or of its row a) are at most a (b)
  number,        ///< integer to number
  // Arithmetic. Integers are 64 bits wide and wrap around.
  neg,
  add,
  sub,
  mul,
  div,
  fma,
  min,
  max,
  abs,
  floor_div,
  floor_mod,  ///< integers, rounded down: -1 / 2 is -1, -1 % 2 is 1; by zero both give 0
  exp,
  log,
  tanh,
  sqrt,
  sigmoid,
  floor,
  // Conditions. `a > b` is written as `b < a`.
  less,
  less_equal,
  equal,
  not_equal,
  logic_and,
  logic_or,
  logic_not,
  where,  ///< a ? b : c
  sum,    ///< of a over the features
};

enum class Type : std::uint8_t { number, integer, boolean };

/// What a node depends on; decides how often the tile evaluator computes it.
enum Uses : std::uint8_t {
  uses_q = 1,
  uses_k = 2,
  uses_score = 4 /* or x */,
  uses_feature = 8,
  uses_b = 16,
  uses_h = 32,
  uses_table = 64
};

struct Node {
  Op op = Op::constant;
  Type type = Type::number;
  std::uint8_t uses = 0;  ///< set by Pool::intern
  std::int32_t a = -1, b = -1, c = -1;
  std::int32_t name_first = 0, name_size = 0;  ///< of a table, into the pool's names
  std::int64_t bits = 0;                       ///< of a constant: an integer, a truth value, or a double's bits

  constexpr double number() const { return std::bit_cast<double>(bits); }
  constexpr std::int64_t integer() const { return bits; }
  constexpr bool is_constant() const { return op == Op::constant; }
  constexpr std::int32_t child(int i) const { return i == 0 ? a : i == 1 ? b : c; }
  friend constexpr bool operator==(const Node&, const Node&) = default;
};

/// Whether a node names a table.
constexpr bool reads_table(Op op) { return op == Op::lookup || op == Op::searchsorted; }

/// A pool that somebody else owns.
struct View {
  std::span<const Node> nodes;
  std::span<const char> names;

  constexpr const Node& operator[](int i) const { return nodes[static_cast<std::size_t>(i)]; }
  constexpr std::string_view name(const Node& n) const {
    return {names.data() + n.name_first, static_cast<std::size_t>(n.name_size)};
  }
};

/// What a function did to a symbol that cannot be traced. Remembered rather than refused on the spot, so that the model
/// reports it with one sentence (graph/diagnostic.hpp).
enum class Misuse : std::uint8_t { none, branch, and_and, or_or };

struct Pool {
  std::vector<Node> nodes;
  std::vector<char> names;
  Misuse misuse = Misuse::none;  ///< the first

  /// Adds a node, or finds what it simplifies to. Children must be in the pool and of the types that the op expects;
  /// build.hpp converts and checks.
  constexpr int intern(Node node);

  /// Adds a node as it is, sharing it with an equal one.
  constexpr int share(Node node);
  /// Offset of a name, added if it is new.
  constexpr std::int32_t intern_name(std::string_view name);

  constexpr int constant(double v) { return share({.type = Type::number, .bits = std::bit_cast<std::int64_t>(v)}); }
  constexpr int constant(std::int64_t v) { return share({.type = Type::integer, .bits = v}); }
  constexpr int constant(bool v) { return share({.type = Type::boolean, .bits = v ? 1 : 0}); }

  constexpr const Node& operator[](int i) const { return nodes[static_cast<std::size_t>(i)]; }
  constexpr View view() const { return {{nodes.data(), nodes.size()}, {names.data(), names.size()}}; }
  constexpr operator View() const { return view(); }
  friend constexpr bool operator==(const Pool&, const Pool&) = default;
};

/// Copies the function at `root` of `from` into `pool`; only what it reaches.
constexpr int import(Pool& pool, View from, int root);

/// Stops a constant evaluation, and throws at run time, with a sentence.
[[noreturn]] void fail(const char* sentence);

/// Fails if a function could not be traced.
constexpr void check(Misuse m) {
  if (m == Misuse::branch) fail("a traced condition is not a bool: write where(condition, a, b), not if or ?:");
  if (m == Misuse::and_and) fail("a traced condition has no &&: write a & b");
  if (m == Misuse::or_or) fail("a traced condition has no ||: write a | b");
}

// Integer arithmetic without undefined cases, the same in every evaluator.
constexpr std::int64_t wrap(std::uint64_t v) { return static_cast<std::int64_t>(v); }
constexpr std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
  return wrap(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrap_sub(std::int64_t a, std::int64_t b) {
  return wrap(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrap_mul(std::int64_t a, std::int64_t b) {
  return wrap(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrap_sub(0, a);
  const std::int64_t quotient = a / b, rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient;
}
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace treadle::scalar

#include <treadle/graph/scalar/simplify.hpp>

#pragma once
// Typed construction of expressions: converts integers to numbers where the two meet, and checks types. Shared by the
// tracer and the parser, so that the same formula gives the same nodes whichever way it comes in.

#include <treadle/graph/dtype.hpp>
#include <treadle/graph/scalar/expression.hpp>

namespace treadle::scalar::build {

constexpr int leaf(Pool& pool, Op op) {
  const bool number = op == Op::score || op == Op::x;
  return pool.share({.op = op, .type = number ? Type::number : Type::integer});
}

constexpr int to_number(Pool& pool, int a) {
  switch (pool[a].type) {
    case Type::number: return a;
    case Type::integer: return pool.intern({.op = Op::number, .type = Type::number, .a = a});
    default: fail("a condition is not a number: write where(condition, 1.0, 0.0)");
  }
}

/// neg, abs (either type kept), floor (an integer is its own floor), exp, log, tanh, sqrt, sigmoid (numbers).
constexpr int unary(Pool& pool, Op op, int a) {
  if (pool[a].type == Type::boolean) fail("a condition is not a number: write where(condition, 1.0, 0.0)");
  if (op == Op::floor && pool[a].type == Type::integer) return a;
  if (op != Op::neg && op != Op::abs) a = to_number(pool, a);
  return pool.intern({.op = op, .type = pool[a].type, .a = a});
}

/// add, sub, mul, min, max, div, floor_mod. `div` of two integers is floor_div.
constexpr int arithmetic(Pool& pool, Op op, int a, int b) {
  if (pool[a].type == Type::boolean || pool[b].type == Type::boolean)
    fail("a condition is not a number: write where(condition, 1.0, 0.0)");
  const bool integers = pool[a].type == Type::integer && pool[b].type == Type::integer;
  if (op == Op::floor_mod && !integers) fail("% needs two integers");
  if (op == Op::div && integers) op = Op::floor_div;
  if (!integers) {
    a = to_number(pool, a);
    b = to_number(pool, b);
  }
  return pool.intern({.op = op, .type = integers ? Type::integer : Type::number, .a = a, .b = b});
}

constexpr int fma(Pool& pool, int a, int b, int c) {
  a = to_number(pool, a);
  b = to_number(pool, b);
  c = to_number(pool, c);
  return pool.intern({.op = Op::fma, .type = Type::number, .a = a, .b = b, .c = c});
}

/// less, less_equal, equal, not_equal.
constexpr int comparison(Pool& pool, Op op, int a, int b) {
  if (pool[a].type == Type::boolean || pool[b].type == Type::boolean)
    fail("conditions are combined with & | !, not compared");
  if (pool[a].type != pool[b].type) {
    a = to_number(pool, a);
    b = to_number(pool, b);
  }
  return pool.intern({.op = op, .type = Type::boolean, .a = a, .b = b});
}

/// logic_and, logic_or.
constexpr int logic(Pool& pool, Op op, int a, int b) {
  if (pool[a].type != Type::boolean || pool[b].type != Type::boolean) fail("& and | need two conditions");
  return pool.intern({.op = op, .type = Type::boolean, .a = a, .b = b});
}

constexpr int logic_not(Pool& pool, int a) {
  if (pool[a].type != Type::boolean) fail("! needs a condition");
  return pool.intern({.op = Op::logic_not, .type = Type::boolean, .a = a});
}

constexpr int where(Pool& pool, int condition, int a, int b) {
  if (pool[condition].type != Type::boolean) fail("the first argument of where is a condition");
  const bool first = pool[a].type == Type::boolean, second = pool[b].type == Type::boolean;
  if (first != second) fail("where needs two numbers or two conditions");
  if (first) {
    const int yes = logic(pool, Op::logic_and, condition, a);
    return logic(pool, Op::logic_or, yes, logic(pool, Op::logic_and, logic_not(pool, condition), b));
  }
  if (pool[a].type != pool[b].type) {
    a = to_number(pool, a);
    b = to_number(pool, b);
  }
  return pool.intern({.op = Op::where, .type = pool[a].type, .a = condition, .b = a, .c = b});
}

constexpr void check_table_name(std::string_view name) {
  if (name.empty()) fail("a lookup needs the name of its table");
  for (const char c : name)
    if (c == '"' || c == '\\' || c == '\n') fail("a table's name has no quotes, backslashes or line ends");
}

/// `type` f32 reads a number from an f32 table; i32 an integer from an i32 or boolean table. Rank 2 if `column` is
/// given.
constexpr int lookup(Pool& pool, DType type, std::string_view name, int index, int column = -1) {
  if (type != DType::f32 && type != DType::i32) fail("a lookup is lookup<f32> or lookup<i32>");
  check_table_name(name);
  if (pool[index].type != Type::integer || (column >= 0 && pool[column].type != Type::integer))
    fail("the index of a lookup is an integer");
  return pool.intern({.op = Op::lookup,
                      .type = type == DType::f32 ? Type::number : Type::integer,
                      .a = index,
                      .b = column,
                      .name_first = pool.intern_name(name),
                      .name_size = static_cast<std::int32_t>(name.size())});
}

/// How many entries of an ascending i32 table are at most `value`; of its row `row` if it is given (rank 2).
constexpr int searchsorted(Pool& pool, std::string_view name, int value, int row = -1) {
  check_table_name(name);
  if (pool[value].type != Type::integer || (row >= 0 && pool[row].type != Type::integer))
    fail("what searchsorted looks for is an integer");
  return pool.intern({.op = Op::searchsorted,
                      .type = Type::integer,
                      .a = row >= 0 ? row : value,
                      .b = row >= 0 ? value : -1,
                      .name_first = pool.intern_name(name),
                      .name_size = static_cast<std::int32_t>(name.size())});
}

/// q[feature], k[feature].
constexpr int feature_of(Pool& pool, Op row, int index) {
  if (row != Op::q && row != Op::k) fail("only q and k have features: write q[i] or k[i] inside sum");
  if (pool[index].type != Type::integer) fail("the index of a feature is an integer");
  return pool.intern({.op = row == Op::q ? Op::query_value : Op::key_value, .type = Type::number, .a = index});
}

constexpr bool has_sum(const Pool& pool, int root) {
  if (pool[root].op == Op::sum) return true;
  for (int i = 0; i < 3; ++i)
    if (const int child = pool[root].child(i); child >= 0 && has_sum(pool, child)) return true;
  return false;
}

constexpr int sum(Pool& pool, int body) {
  if (has_sum(pool, body)) fail("a sum inside a sum is not supported");
  return pool.intern({.op = Op::sum, .type = Type::number, .a = to_number(pool, body)});
}

}  // namespace treadle::scalar::build

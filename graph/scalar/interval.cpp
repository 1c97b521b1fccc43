#include <treadle/graph/scalar/interval.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::scalar {

namespace {

constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();

Interval integers(std::int64_t lo, std::int64_t hi) {
  Interval v;
  v.lo = lo;
  v.hi = hi;
  return v;
}
Interval any_integer() { return integers(lowest, highest); }

Interval truth(bool can_be_false, bool can_be_true) {
  Interval v;
  v.can_be_false = can_be_false;
  v.can_be_true = can_be_true;
  return v;
}

Interval exact(double lo, double hi, bool nan = false) {
  Interval v;
  v.number_lo = lo;
  v.number_hi = hi;
  v.nan = nan;
  return v;
}
Interval any_number() { return exact(-infinity, infinity, true); }

/// Kernels compute in float32, the oracle in float64: room for either rounding, for subnormals flushed to zero and for
/// overflow to infinity.
Interval rounded(double lo, double hi, bool nan = false, double relative = 3e-7) {
  if (std::isnan(lo) || std::isnan(hi)) return any_number();
  lo -= std::fabs(lo) * relative + 1e-37;
  hi += std::fabs(hi) * relative + 1e-37;
  constexpr double largest = 3.4e38;
  if (lo < -largest) lo = -infinity;
  if (hi > largest) hi = infinity;
  if (lo > largest) lo = largest;
  if (hi < -largest) hi = -largest;
  return exact(lo, hi, nan);
}

bool finite(const Interval& v) { return !v.nan && v.number_lo > -infinity && v.number_hi < infinity; }

Interval hull(const Node& n, const Interval& a, const Interval& b) {
  if (n.type == Type::integer) return integers(std::min(a.lo, b.lo), std::max(a.hi, b.hi));
  return exact(std::min(a.number_lo, b.number_lo), std::max(a.number_hi, b.number_hi), a.nan || b.nan);
}

Interval integer_division(const Interval& a, const Interval& b) {
  const bool spans_zero = b.lo <= 0 && b.hi >= 0;
  if (a.lo == lowest) return any_integer();
  if (spans_zero) {
    const std::int64_t largest = std::max(a.lo < 0 ? -a.lo : a.lo, a.hi < 0 ? -a.hi : a.hi);
    return integers(-largest, largest);
  }
  // Monotone in each operand while the divisor keeps its sign.
  const std::int64_t corners[] = {floor_div(a.lo, b.lo), floor_div(a.lo, b.hi), floor_div(a.hi, b.lo),
                                  floor_div(a.hi, b.hi)};
  return integers(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Interval remainder(const Interval& a, const Interval& b) {
  if (b.lo == b.hi && b.lo > 0) {
    if (floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) return integers(floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo));
    return integers(0, b.lo - 1);
  }
  return integers(b.lo < 0 ? std::max(b.lo, lowest + 1) + 1 : 0, b.hi > 0 ? b.hi - 1 : 0);
}

Interval integer_operation(const Node& n, const Interval& a, const Interval& b) {
  std::int64_t lo = 0, hi = 0;
  switch (n.op) {
    case Op::neg: return a.lo == lowest ? any_integer() : integers(-a.hi, -a.lo);
    case Op::abs:
      if (a.lo == lowest) return any_integer();
      if (a.lo >= 0) return a;
      if (a.hi <= 0) return integers(-a.hi, -a.lo);
      return integers(0, std::max(-a.lo, a.hi));
    case Op::add:
      if (__builtin_add_overflow(a.lo, b.lo, &lo) || __builtin_add_overflow(a.hi, b.hi, &hi)) return any_integer();
      return integers(lo, hi);
    case Op::sub:
      if (__builtin_sub_overflow(a.lo, b.hi, &lo) || __builtin_sub_overflow(a.hi, b.lo, &hi)) return any_integer();
      return integers(lo, hi);
    case Op::mul: {
      std::int64_t corners[4];
      if (__builtin_mul_overflow(a.lo, b.lo, &corners[0]) || __builtin_mul_overflow(a.lo, b.hi, &corners[1]) ||
          __builtin_mul_overflow(a.hi, b.lo, &corners[2]) || __builtin_mul_overflow(a.hi, b.hi, &corners[3]))
        return any_integer();
      return integers(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
    }
    case Op::min: return integers(std::min(a.lo, b.lo), std::min(a.hi, b.hi));
    case Op::max: return integers(std::max(a.lo, b.lo), std::max(a.hi, b.hi));
    case Op::floor_div: return integer_division(a, b);
    case Op::floor_mod: return remainder(a, b);
    default: return any_integer();
  }
}

Interval product(const Interval& a, const Interval& b) {
  const double corners[] = {a.number_lo * b.number_lo, a.number_lo * b.number_hi, a.number_hi * b.number_lo,
                            a.number_hi * b.number_hi};
  return exact(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Interval number_operation(const Node& n, const Interval& a, const Interval& b, const Interval& c) {
  switch (n.op) {
    case Op::number: {
      const double lo = static_cast<double>(a.lo), hi = static_cast<double>(a.hi);
      const bool held = a.lo >= -(1 << 24) && a.hi <= (1 << 24);  // float32 holds these
      return held ? exact(lo, hi) : rounded(lo, hi);
    }
    case Op::neg: return exact(-a.number_hi, -a.number_lo, a.nan);
    case Op::abs:
      if (a.number_lo >= 0) return a;
      if (a.number_hi <= 0) return exact(-a.number_hi, -a.number_lo, a.nan);
      return exact(0, std::max(-a.number_lo, a.number_hi), a.nan);
    case Op::floor: return exact(std::floor(a.number_lo), std::floor(a.number_hi), a.nan);
    case Op::min:
    case Op::max:
      if (a.nan || b.nan) return hull(n, a, b);
      if (n.op == Op::min) return exact(std::min(a.number_lo, b.number_lo), std::min(a.number_hi, b.number_hi));
      return exact(std::max(a.number_lo, b.number_lo), std::max(a.number_hi, b.number_hi));
    default: break;
  }
  // Beyond here infinities can make NaN.
  if (!finite(a) || (n.b >= 0 && !finite(b)) || (n.c >= 0 && !finite(c))) return any_number();
  switch (n.op) {
    case Op::add: return rounded(a.number_lo + b.number_lo, a.number_hi + b.number_hi);
    case Op::sub: return rounded(a.number_lo - b.number_hi, a.number_hi - b.number_lo);
    case Op::mul: {
      const Interval p = product(a, b);
      return rounded(p.number_lo, p.number_hi);
    }
    case Op::fma: {
      const Interval p = product(a, b);
      // A sum that cancels keeps an error as large as double's rounding of its terms.
      const double slack = 1e-15 * (std::fabs(p.number_lo) + std::fabs(p.number_hi));
      return rounded(p.number_lo + c.number_lo - slack, p.number_hi + c.number_hi + slack);
    }
    case Op::div: {
      if (b.number_lo <= 0 && b.number_hi >= 0) return any_number();
      const double corners[] = {a.number_lo / b.number_lo, a.number_lo / b.number_hi, a.number_hi / b.number_lo,
                                a.number_hi / b.number_hi};
      return rounded(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
    }
    case Op::exp: return rounded(std::exp(a.number_lo), std::exp(a.number_hi), false, 1e-5);
    case Op::log:
      return a.number_lo <= 1e-36 ? any_number()
                                  : rounded(std::log(a.number_lo) - 1e-6, std::log(a.number_hi) + 1e-6, false, 1e-5);
    case Op::sqrt:
      return a.number_lo < 0 ? any_number() : rounded(std::sqrt(a.number_lo), std::sqrt(a.number_hi), false, 1e-5);
    case Op::tanh: return rounded(std::tanh(a.number_lo), std::tanh(a.number_hi), false, 1e-5);
    case Op::sigmoid: return rounded(1 / (1 + std::exp(-a.number_lo)), 1 / (1 + std::exp(-a.number_hi)), false, 1e-5);
    default: return any_number();
  }
}

Interval comparison(const Node& n, Type type, const Interval& a, const Interval& b) {
  const bool integer = type == Type::integer;
  const bool nan = !integer && (a.nan || b.nan);
  const auto below = [&](bool strict) {  // all of a below all of b
    if (integer) return strict ? a.hi < b.lo : a.hi <= b.lo;
    return strict ? a.number_hi < b.number_lo : a.number_hi <= b.number_lo;
  };
  const auto above = [&](bool strict) {
    if (integer) return strict ? a.lo > b.hi : a.lo >= b.hi;
    return strict ? a.number_lo > b.number_hi : a.number_lo >= b.number_hi;
  };
  const bool apart = below(true) || above(true);
  const bool same = integer ? a.lo == a.hi && b.lo == b.hi && a.lo == b.lo
                            : a.number_lo == a.number_hi && b.number_lo == b.number_hi && a.number_lo == b.number_lo;
  switch (n.op) {
    case Op::less: return truth(nan || !below(true), !above(false));
    case Op::less_equal: return truth(nan || !below(false), !above(true));
    case Op::equal: return truth(nan || !same, !apart);
    default: return truth(!apart, nan || !same);
  }
}

Interval lookup(const TileProgram& program, int node, const Interval& a, const Interval& b) {
  const Node& n = program.nodes[static_cast<std::size_t>(node)];
  const BoundTable& table =
      program.slots[static_cast<std::size_t>(program.tables[static_cast<std::size_t>(node)])].table;
  const auto past = [](const Interval& v) { return v.hi == highest ? highest : v.hi + 1; };
  const MinMax range = n.b >= 0 ? table.range(a.lo, past(a), b.lo, past(b)) : table.range(0, 1, a.lo, past(a));
  if (n.type == Type::integer)
    return integers(static_cast<std::int64_t>(range.lo), static_cast<std::int64_t>(range.hi));
  return table.has_nan() ? any_number() : exact(range.lo, range.hi);
}

Interval searchsorted(const TileProgram& program, int node, const Interval& a, const Interval& b) {
  const bool by_row = program.nodes[static_cast<std::size_t>(node)].b >= 0;
  const TensorView& table =
      program.slots[static_cast<std::size_t>(program.tables[static_cast<std::size_t>(node)])].table.view;
  const Interval& value = by_row ? b : a;
  if (!by_row) return integers(count_until(table, 0, value.lo), count_until(table, 0, value.hi));
  constexpr std::int64_t few = 8;
  const std::int64_t first = std::max<std::int64_t>(a.lo, 0), last = std::min(a.hi, table.shape[0] - 1);
  if (first > last) return integers(0, 0);
  if (last - first >= few) return integers(0, table.shape[1]);
  const bool outside = a.lo < 0 || a.hi >= table.shape[0];
  std::int64_t lo = outside ? 0 : table.shape[1], hi = 0;
  for (std::int64_t row = first; row <= last; ++row) {
    lo = std::min(lo, count_until(table, row, value.lo));
    hi = std::max(hi, count_until(table, row, value.hi));
  }
  return integers(lo, hi);
}

Interval constant(const Node& n) {
  if (n.type == Type::integer) return integers(n.integer(), n.integer());
  if (n.type == Type::boolean) return truth(n.integer() == 0, n.integer() != 0);
  const double v = n.number();
  if (std::isnan(v)) return any_number();
  const bool held = static_cast<double>(static_cast<float>(v)) == v;
  return held ? exact(v, v) : rounded(v, v);
}

Interval node_interval(const TileProgram& program, int i, const Box& box, const Interval* values) {
  const Node& n = program.nodes[static_cast<std::size_t>(i)];
  const Interval none;
  const Interval& a = n.a >= 0 ? values[n.a] : none;
  const Interval& b = n.b >= 0 ? values[n.b] : none;
  const Interval& c = n.c >= 0 ? values[n.c] : none;
  switch (n.op) {
    case Op::constant: return constant(n);
    case Op::b: return integers(box.b0, box.b1 - 1);
    case Op::h: return integers(box.h0, box.h1 - 1);
    case Op::q: return integers(box.q0, box.q1 - 1);
    case Op::k: return integers(box.k0, box.k1 - 1);
    case Op::q_len: return integers(program.extents.q_len, program.extents.q_len);
    case Op::k_len: return integers(program.extents.k_len, program.extents.k_len);
    case Op::iteration: return integers(program.extents.iteration, program.extents.iteration);
    case Op::feature: return integers(0, std::max<std::int64_t>(program.extents.features, 1) - 1);
    case Op::lookup: return lookup(program, i, a, b);
    case Op::searchsorted: return searchsorted(program, i, a, b);
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal: return comparison(n, program.nodes[static_cast<std::size_t>(n.a)].type, a, b);
    case Op::logic_and: return truth(a.can_be_false || b.can_be_false, a.can_be_true && b.can_be_true);
    case Op::logic_or: return truth(a.can_be_false && b.can_be_false, a.can_be_true || b.can_be_true);
    case Op::logic_not: return truth(a.can_be_true, a.can_be_false);
    case Op::where:
      if (!a.can_be_false) return b;
      if (!a.can_be_true) return c;
      return hull(n, b, c);
    default: break;
  }
  return n.type == Type::integer ? integer_operation(n, a, b) : number_operation(n, a, b, c);
}

bool needs_key(Class c) { return c == Class::k_only || c == Class::both; }

void run(const TileProgram& program, const Box& box, Interval* values, bool keys) {
  for (int i = 0; i <= program.root(); ++i)
    if (needs_key(program.classes[static_cast<std::size_t>(i)]) == keys)
      values[i] = node_interval(program, i, box, values);
}

}  // namespace

void intervals_of_queries(const TileProgram& program, const Box& box, Interval* values) {
  run(program, box, values, false);
}

void intervals_of_keys(const TileProgram& program, const Box& box, Interval* values) {
  run(program, box, values, true);
}

Verdict classify(const TileProgram& program, const Box& box) {
  if (box.b0 >= box.b1 || box.h0 >= box.h1 || box.q0 >= box.q1 || box.k0 >= box.k1) return Verdict::empty;
  std::vector<Interval> values(program.nodes.size());
  intervals_of_queries(program, box, values.data());
  intervals_of_keys(program, box, values.data());
  return verdict(values.back());
}

}  // namespace treadle::scalar

#pragma once
// Runs a TileProgram over lanes of queries and rows of keys. A template, so that every ISA has its own copy.
//
// `Math` supplies exp, log, tanh, sqrt, sigmoid, division by a constant and fma on arrays of floats; `Int` is the lane
// type of integers, 32 bits unless the program is wide. Truth values are 32-bit lanes, 0 or −1. Lanes are a multiple of
// Math::unit, and loops have bodies of so many, so that the compiler turns them into straight vector code; values of
// lanes past the end are computed and ignored, so no operation may trap.

#include <treadle/graph/scalar/program.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace treadle::scalar {

/// Plain loops. `Tag` keeps the copies of differently compiled files apart; builtins, because the functions of
/// namespace std are inline and the linker would merge their copies.
template <class Tag>
struct PlainMath {
  static constexpr int unit = TileProgram::max_unit;
  static void exp(const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = __builtin_expf(x[i]);
  }
  static void log(const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = __builtin_logf(x[i]);
  }
  static void tanh(const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = __builtin_tanhf(x[i]);
  }
  static void sqrt(const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = __builtin_sqrtf(x[i]);
  }
  static void sigmoid(const float* x, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = 1.0f / (1.0f + __builtin_expf(-x[i]));
  }
  static void divide(const float* x, float divisor, float* out, int n) {
    for (int i = 0; i < n; ++i) out[i] = x[i] / divisor;
  }
  /// One unit: out = x·y + z.
  static void fma(const float* x, const float* y, const float* z, float* out) {
    for (int i = 0; i < unit; ++i) out[i] = __builtin_fmaf(x[i], y[i], z[i]);
  }
};

/// Where the features of sums are: Qᵀ [feature][lane] for the lanes of queries(), and key 0's row of K [key][feature].
struct FeatureRows {
  const float* q = nullptr;
  std::int64_t q_ld = 0;
  const float* k = nullptr;
  std::int64_t k_stride = 0;
};

template <class Math, class Int>
class TileEngine {
 public:
  static constexpr int max_lanes = TileProgram::max_lanes;
  static constexpr int unit = Math::unit;
  static_assert(unit <= TileProgram::max_unit);

  TileEngine(const TileProgram& program, void* workspace) : p_(program), values_(static_cast<std::byte*>(workspace)) {}

  /// Before queries(), for functions that hold a sum.
  void features(const FeatureRows& rows) { features_ = rows; }

  /// What does not depend on the key, for queries q0 … q0 + count − 1, at most 64. `ready`: the workspace holds it
  /// already.
  void queries(std::int64_t b, std::int64_t h, std::int64_t q0, int count, bool ready = false) {
    b_ = b;
    h_ = h;
    q0_ = q0;
    lanes_ = padded(count);
    queries_ = count;
    if (ready) return;
    run(Class::constant, unit, 1);
    run(Class::q_only, lanes_, 1);
  }

  /// What depends on the key alone, for keys k0 … k0 + count − 1, at most 64.
  void keys(std::int64_t k0, int count) {
    k0_ = k0;
    keys_ = count;
    run(Class::k_only, padded(count), 1);
  }

  /// The rest, for `count` keys, at most max_rows, from the `first`-th of keys(). `scores` (may be null) holds a row of
  /// `nq` lanes for each.
  void rows(int first, int count, const float* scores, std::int64_t ld, int nq) {
    first_ = first;
    scores_ = scores;
    ld_ = ld;
    nq_ = nq;
    run(Class::both, lanes_, count);
  }

  /// The root's lanes for rows r of rows(), as results(r, buffer); the buffer of 64 lanes is used if they are all the
  /// same.
  auto results() const {
    return [root = operand(p_.root(), Class::both), lanes = lanes_]<class T>(int r, T* buffer) -> const T* {
      if (root.lanes) return at<T>(root, r);
      const T v = *at<T>(root, r);
      for (int l = 0; l < lanes; ++l) buffer[l] = v;
      return buffer;
    };
  }

  /// Bit j set where lane j of a row of truth values is.
  static std::uint64_t pack(const std::int32_t* lanes, int count) {
    std::uint8_t bytes[max_lanes] = {};
    for (int i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(lanes[i] & 1);
    std::uint64_t bits = 0;
    for (int i = 0; i < max_lanes / 8; ++i) {
      std::uint64_t eight;
      std::memcpy(&eight, bytes + 8 * i, 8);
      // Gathers the lowest bit of each of eight bytes into the top byte (little endian).
      bits |= ((eight * 0x0102040810204080u) >> 56) << (8 * i);
    }
    return bits;
  }

  using Unsigned = std::make_unsigned_t<Int>;
  static Int to_int(Unsigned v) { return static_cast<Int>(v); }
  static Int minus(Int a, Int b) { return to_int(static_cast<Unsigned>(a) - static_cast<Unsigned>(b)); }
  static Int size(Int a) { return a < 0 ? minus(0, a) : a; }
  /// Integers rounded down, of lanes; by zero both give 0.
  static Int divide(Int a, Int b) {
    if constexpr (sizeof(Int) == 4) {
      // Exact: the quotient of two 32-bit integers is further from the next integer than double's rounding. Unlike an
      // integer division, it vectorises.
      const Int d = b == 0 ? 1 : b;
      const auto quotient =
          static_cast<Int>(static_cast<std::int64_t>(static_cast<double>(a) / static_cast<double>(d)));
      const Int rest = to_int(static_cast<Unsigned>(a) - static_cast<Unsigned>(quotient) * static_cast<Unsigned>(d));
      const Int down = (rest != 0) & ((rest ^ d) < 0);
      return b == 0 ? 0 : quotient - down;
    } else {
      return floor_div(a, b);
    }
  }
  static Int modulo(Int a, Int b) {
    return b == 0 ? 0
                  : to_int(static_cast<Unsigned>(a) - static_cast<Unsigned>(divide(a, b)) * static_cast<Unsigned>(b));
  }

 private:
  /// Where a node's values are, seen from a loop over rows and lanes.
  struct Operand {
    const std::byte* base;
    std::int64_t row_bytes;
    bool lanes;             // one value for each lane, or one for the whole row
    bool constant = false;  // one for all rows, and there are `unit` copies of it
  };

  static int padded(int count) { return (count + unit - 1) / unit * unit; }
  static std::int64_t bytes_of(Type type) { return type == Type::integer ? sizeof(Int) : 4; }

  const Node& node(int i) const { return p_.nodes[static_cast<std::size_t>(i)]; }
  Class class_of(int i) const { return p_.classes[static_cast<std::size_t>(i)]; }
  std::byte* place(int i) const { return values_ + p_.offsets[static_cast<std::size_t>(i)]; }

  Operand operand(int i, Class user) const {
    const Class c = class_of(i);
    const std::int64_t bytes = bytes_of(node(i).type);
    // Whole strips of scores are read where they are.
    if (is_score(i) && nq_ == lanes_) return {reinterpret_cast<const std::byte*>(scores_), ld_ * 4, true};
    if (c == Class::constant) return {place(i), 0, user == Class::constant, true};
    if (c == Class::k_only && user == Class::k_only) return {place(i) + shift_ * bytes, 0, true};
    if (user != Class::both || c == Class::q_only) return {place(i), 0, true};
    if (c == Class::k_only) return {place(i) + first_ * bytes, bytes, false};
    return {place(i), bytes * lanes_, true};
  }

  bool is_score(int i) const { return node(i).op == Op::score || node(i).op == Op::x; }

  template <class T>
  static const T* at(const Operand& o, int r) {
    return reinterpret_cast<const T*>(o.base + r * o.row_bytes);
  }
  /// One row of an operand, a unit at a time; what is the same for all lanes is one unit that is read again and again.
  template <class T>
  struct Row {
    const T* first;
    std::ptrdiff_t step;  // from one unit to the next: 0 to stay at the first
    T copies[unit];

    Row(const Operand& o, int r) : first(at<T>(o, r)), step(o.lanes ? unit : 0) {
      if (o.lanes || o.constant) return;
      const T v = *first;
      for (int i = 0; i < unit; ++i) copies[i] = v;
      first = copies;
    }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;
    T lane(int l) const { return step != 0 ? first[l] : *first; }
  };

  /// Rows that follow each other without a gap are one long row.
  template <class T>
  bool joined(const Operand& o, int lanes) const {
    return (o.constant && !o.lanes) || (o.lanes && o.row_bytes == lanes * static_cast<std::int64_t>(sizeof(T)));
  }
  static void join(int& lanes, int& rows) {
    lanes *= rows;
    rows = 1;
  }

  void run(Class c, int lanes, int rows) {
    for (const std::int32_t i : p_.steps_of(c)) step(i, c, lanes, rows);
  }

  template <class R>
  R* out(int i, Class c, int r) const {
    const std::int64_t at = c == Class::both ? r * lanes_ : c == Class::k_only ? shift_ : 0;
    return reinterpret_cast<R*>(place(i) + at * static_cast<std::int64_t>(sizeof(R)));
  }

  /// to[j] = f(j). A parameter, as compilers believe __restrict of these.
  template <class R, class F>
  static void one_unit(R* __restrict to, F f) {
#pragma GCC unroll 1  // a loop is vectorised, its copies are not
    for (int j = 0; j < unit; ++j) to[j] = f(j);
  }

  template <class A, class R, class F>
  void map1(int i, Class c, int lanes, int rows, F f) {
    const Operand x = operand(node(i).a, c);
    if (joined<A>(x, lanes)) join(lanes, rows);
    for (int r = 0; r < rows; ++r) {
      const Row<A> a(x, r);
      const A* p = a.first;
      R* o = out<R>(i, c, r);
      for (int l = 0; l < lanes; l += unit, p += a.step) one_unit(o + l, [&](int j) { return f(p[j]); });
    }
  }

  template <class A, class R, class F>
  void map2(int i, Class c, int lanes, int rows, F f) {
    map2<A, R>(i, node(i), c, lanes, rows, f);
  }
  /// Of the operands of `n`.
  template <class A, class R, class F>
  void map2(int i, const Node& n, Class c, int lanes, int rows, F f) {
    const Operand x = operand(n.a, c), y = operand(n.b, c);
    if (joined<A>(x, lanes) && joined<A>(y, lanes)) join(lanes, rows);
    for (int r = 0; r < rows; ++r) {
      const Row<A> a(x, r), b(y, r);
      const A *p = a.first, *q = b.first;
      R* o = out<R>(i, c, r);
      for (int l = 0; l < lanes; l += unit, p += a.step, q += b.step)
        one_unit(o + l, [&](int j) { return f(p[j], q[j]); });
    }
  }

  template <class T>
  void select(int i, Class c, int lanes, int rows) {
    const Operand w = operand(node(i).a, c), x = operand(node(i).b, c), y = operand(node(i).c, c);
    for (int r = 0; r < rows; ++r) {
      const Row<std::int32_t> truths(w, r);
      const Row<T> a(x, r), b(y, r);
      const std::int32_t* t = truths.first;
      const T *p = a.first, *q = b.first;
      T* o = out<T>(i, c, r);
      for (int l = 0; l < lanes; l += unit, t += truths.step, p += a.step, q += b.step)
        one_unit(o + l, [&](int j) { return t[j] ? p[j] : q[j]; });
    }
  }

  /// f(from, to, count)
  template <class F>
  void math(int i, Class c, int lanes, int rows, F f) {
    const Operand x = operand(node(i).a, c);
    if (joined<float>(x, lanes)) join(lanes, rows);
    for (int r = 0; r < rows; ++r) {
      float* o = out<float>(i, c, r);
      if (x.lanes) {
        f(at<float>(x, r), o, lanes);
      } else {
        const Row<float> a(x, r);
        for (int l = 0; l < lanes; l += unit) f(a.first, o + l, unit);
      }
    }
  }

  void divide_numbers(int i, Class c, int lanes, int rows) {
    const Node& divisor = node(node(i).b);
    if (divisor.op != Op::constant)
      return map2<float, float>(i, c, lanes, rows, [](float a, float b) { return a / b; });
    const auto by = static_cast<float>(divisor.number());
    math(i, c, lanes, rows, [by](const float* x, float* to, int n) { Math::divide(x, by, to, n); });
  }

  void fused(int i, Class c, int lanes, int rows) {
    const Operand x = operand(node(i).a, c), y = operand(node(i).b, c), z = operand(node(i).c, c);
    if (joined<float>(x, lanes) && joined<float>(y, lanes) && joined<float>(z, lanes)) join(lanes, rows);
    for (int r = 0; r < rows; ++r) {
      const Row<float> a(x, r), b(y, r), d(z, r);
      const float *p = a.first, *q = b.first, *s = d.first;
      float* o = out<float>(i, c, r);
      for (int l = 0; l < lanes; l += unit, o += unit, p += a.step, q += b.step, s += d.step) Math::fma(p, q, s, o);
    }
  }

  void gather(int i, Class c, int lanes, int rows) {
    const Node& n = node(i);
    const TensorView& table = p_.slots[static_cast<std::size_t>(p_.tables[static_cast<std::size_t>(i)])].table.view;
    const Operand x = operand(n.a, c), y = operand(n.b >= 0 ? n.b : n.a, c);
    const auto as_before = [](const Operand& o, int r) {
      return o.row_bytes == 0 || (!o.lanes && *at<Int>(o, r) == *at<Int>(o, r - 1));
    };
    for (int r = 0; r < rows; ++r) {
      // Keys of one block look up the same entries.
      const bool again = r > 0 && as_before(x, r) && as_before(y, r);
      if (n.op == Op::searchsorted) {
        const bool by_row = n.b >= 0;
        gather_row<Int>(i, c, r, again, x, y, lanes, [&](Int a, Int b) {
          return static_cast<Int>(by_row ? count_until(table, a, b) : count_until(table, 0, a));
        });
      } else if (n.type == Type::integer) {
        gather_row<Int>(i, c, r, again, x, y, lanes,
                        [&](Int a, Int b) { return static_cast<Int>(read_integer(table, a, b)); });
      } else {
        gather_row<float>(i, c, r, again, x, y, lanes, [&](Int a, Int b) { return read_number(table, a, b); });
      }
    }
  }
  template <class T, class Read>
  void gather_row(int i, Class c, int r, bool again, const Operand& x, const Operand& y, int lanes, Read read) {
    T* o = out<T>(i, c, r);
    if (again) {
      std::memcpy(o, out<T>(i, c, r - 1), static_cast<std::size_t>(lanes) * sizeof(T));
      return;
    }
    const Row<Int> a(x, r), b(y, r);
    Int last_a = 0, last_b = 0;
    for (int l = 0; l < lanes; ++l) {
      const Int at_a = a.lane(l), at_b = b.lane(l);
      o[l] = l > 0 && at_a == last_a && at_b == last_b ? o[l - 1] : read(at_a, at_b);
      last_a = at_a;
      last_b = at_b;
    }
  }

  /// One feature of each query, 0 past the last query and outside the features.
  void query_values(int i, Class c, int lanes, int rows) {
    const Operand index = operand(node(i).a, c);
    const std::int64_t count = p_.extents.features;
    for (int r = 0; r < rows; ++r) {
      float* o = out<float>(i, c, r);
      if (!index.lanes) {
        const std::int64_t at_feature = *at<Int>(index, r);
        const bool inside = at_feature >= 0 && at_feature < count;
        if (inside)
          std::memcpy(o, features_.q + at_feature * features_.q_ld, static_cast<std::size_t>(queries_) * sizeof(float));
        for (int l = inside ? queries_ : 0; l < lanes; ++l) o[l] = 0;
        continue;
      }
      const Int* feature = at<Int>(index, r);
      for (int l = 0; l < lanes; ++l) {
        const bool inside = l < queries_ && feature[l] >= 0 && feature[l] < count;
        o[l] = inside ? features_.q[feature[l] * features_.q_ld + l] : 0;
      }
    }
  }
  /// One feature of each key, 0 past the last key and outside the features.
  void key_values(int i, Class c, int lanes, int rows) {
    const Operand index = operand(node(i).a, c);
    const auto value = [&](std::int64_t key, std::int64_t feature) {
      const bool inside = key < keys_ && feature >= 0 && feature < p_.extents.features;
      return inside ? features_.k[(k0_ + key) * features_.k_stride + feature] : 0.0f;
    };
    for (int r = 0; r < rows; ++r) {
      float* o = out<float>(i, c, r);
      const Row<Int> feature(index, r);
      for (int l = 0; l < lanes; ++l) o[l] = value(c == Class::both ? first_ + r : shift_ + l, feature.lane(l));
    }
  }

  /// Terms are added in the order of the features; a product is added with one rounding.
  void sum(int i, Class c, int lanes, int rows) {
    const int term = node(i).a;
    const bool product = node(term).op == Op::mul && (node(term).uses & uses_feature) != 0;
    for (int r = 0; r < rows; ++r) {
      float* o = out<float>(i, c, r);
      for (int l = 0; l < lanes; ++l) o[l] = 0;
    }
    for (std::int64_t f = 0; f < p_.extents.features; ++f) {
      feature_ = f;
      shift_ = c == Class::both ? first_ : 0;
      for (const std::int32_t part : p_.body(i)) {
        if (product && part == term) continue;
        switch (class_of(part)) {
          case Class::constant: step(part, Class::constant, unit, 1); break;
          case Class::q_only: step(part, Class::q_only, lanes_, 1); break;
          case Class::k_only: step(part, Class::k_only, c == Class::both ? rows : lanes, 1); break;
          case Class::both: step(part, Class::both, lanes, rows); break;
        }
      }
      shift_ = 0;
      const Operand x = operand(product ? node(term).a : term, c), y = operand(product ? node(term).b : term, c);
      for (int r = 0; r < rows; ++r) {
        float* o = out<float>(i, c, r);
        const Row<float> a(x, r), b(y, r);
        if (product) {
          const float *p = a.first, *q = b.first;
          for (int l = 0; l < lanes; l += unit, o += unit, p += a.step, q += b.step) Math::fma(p, q, o, o);
        } else {
          for (int l = 0; l < lanes; ++l) o[l] += a.lane(l);
        }
      }
    }
  }

  template <class T>
  void fill(int i, Class c, int lanes, T value) {
    T* o = out<T>(i, c, 0);
    for (int l = 0; l < lanes; ++l) o[l] = value;
  }
  void count_from(int i, Class c, int lanes, std::int64_t first) {
    Int* o = out<Int>(i, c, 0);
    for (int l = 0; l < lanes; ++l) o[l] = static_cast<Int>(static_cast<Int>(first) + l);
  }

  void step(int i, Class c, int lanes, int rows) {
    const Node& n = node(i);
    switch (n.op) {
      case Op::constant:
        if (n.type == Type::number)
          fill(i, c, lanes, static_cast<float>(n.number()));
        else if (n.type == Type::integer)
          fill(i, c, lanes, static_cast<Int>(n.integer()));
        else
          fill(i, c, lanes, static_cast<std::int32_t>(n.integer() ? -1 : 0));
        return;
      case Op::b: return fill(i, c, lanes, static_cast<Int>(b_));
      case Op::h: return fill(i, c, lanes, static_cast<Int>(h_));
      case Op::q_len: return fill(i, c, lanes, static_cast<Int>(p_.extents.q_len));
      case Op::k_len: return fill(i, c, lanes, static_cast<Int>(p_.extents.k_len));
      case Op::iteration: return fill(i, c, lanes, static_cast<Int>(p_.extents.iteration));
      case Op::q: return count_from(i, c, lanes, q0_);
      case Op::k: return count_from(i, c, lanes, k0_);
      case Op::score:
      case Op::x:
        if (nq_ == lanes_ || scores_ == nullptr) return;  // a mask has no scores
        for (int r = 0; r < rows; ++r) {
          float* o = out<float>(i, c, r);
          std::memcpy(o, scores_ + r * ld_, static_cast<std::size_t>(nq_) * sizeof(float));
          for (int l = nq_; l < lanes; ++l) o[l] = 0;
        }
        return;
      case Op::lookup:
      case Op::searchsorted: return gather(i, c, lanes, rows);
      case Op::feature: return fill(i, c, lanes, static_cast<Int>(feature_));
      case Op::query_value: return query_values(i, c, lanes, rows);
      case Op::key_value: return key_values(i, c, lanes, rows);
      case Op::sum: return sum(i, c, lanes, rows);
      case Op::number:
        if (const std::int32_t difference = p_.distances[static_cast<std::size_t>(i)]; difference >= 0)
          return map2<Int, float>(i, node(difference), c, lanes, rows,
                                  [](Int a, Int b) { return static_cast<float>(size(minus(a, b))); });
        return map1<Int, float>(i, c, lanes, rows, [](Int a) { return static_cast<float>(a); });
      case Op::exp: return math(i, c, lanes, rows, Math::exp);
      case Op::log: return math(i, c, lanes, rows, Math::log);
      case Op::tanh: return math(i, c, lanes, rows, Math::tanh);
      case Op::sqrt: return math(i, c, lanes, rows, Math::sqrt);
      case Op::sigmoid: return math(i, c, lanes, rows, Math::sigmoid);
      case Op::fma: return fused(i, c, lanes, rows);
      case Op::where:
        if (n.type == Type::number) return select<float>(i, c, lanes, rows);
        return select<Int>(i, c, lanes, rows);
      case Op::less:
      case Op::less_equal:
      case Op::equal:
      case Op::not_equal:
        if (node(n.a).type == Type::number) return compare<float>(i, c, lanes, rows);
        return compare<Int>(i, c, lanes, rows);
      case Op::logic_and: return logic(i, c, lanes, rows, [](std::int32_t a, std::int32_t b) { return a & b; });
      case Op::logic_or: return logic(i, c, lanes, rows, [](std::int32_t a, std::int32_t b) { return a | b; });
      case Op::logic_not: return map1<std::int32_t, std::int32_t>(i, c, lanes, rows, [](std::int32_t a) { return ~a; });
      default: break;
    }
    if (n.type == Type::number)
      numbers(i, c, lanes, rows);
    else
      integers(i, c, lanes, rows);
  }

  template <class F>
  void logic(int i, Class c, int lanes, int rows, F f) {
    map2<std::int32_t, std::int32_t>(i, c, lanes, rows, f);
  }
  template <class T>
  void compare(int i, Class c, int lanes, int rows) {
    using R = std::int32_t;
    switch (node(i).op) {
      case Op::less: return map2<T, R>(i, c, lanes, rows, [](T a, T b) { return -static_cast<R>(a < b); });
      case Op::less_equal: return map2<T, R>(i, c, lanes, rows, [](T a, T b) { return -static_cast<R>(a <= b); });
      case Op::equal: return map2<T, R>(i, c, lanes, rows, [](T a, T b) { return -static_cast<R>(a == b); });
      default: return map2<T, R>(i, c, lanes, rows, [](T a, T b) { return -static_cast<R>(a != b); });
    }
  }

  void numbers(int i, Class c, int lanes, int rows) {
    using T = float;
    switch (node(i).op) {
      case Op::neg: return map1<T, T>(i, c, lanes, rows, [](T a) { return -a; });
      case Op::abs: return map1<T, T>(i, c, lanes, rows, [](T a) { return __builtin_fabsf(a); });
      case Op::floor: return map1<T, T>(i, c, lanes, rows, [](T a) { return __builtin_floorf(a); });
      case Op::add: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return a + b; });
      case Op::sub: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return a - b; });
      case Op::mul: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return a * b; });
      case Op::div: return divide_numbers(i, c, lanes, rows);
      case Op::min: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return b < a ? b : a; });
      case Op::max: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return a < b ? b : a; });
      default: return;  // compile() refuses the rest
    }
  }

  void integers(int i, Class c, int lanes, int rows) {
    using T = Int;
    using U = Unsigned;
    switch (node(i).op) {
      case Op::neg: return map1<T, T>(i, c, lanes, rows, [](T a) { return to_int(U{0} - static_cast<U>(a)); });
      case Op::abs: return map1<T, T>(i, c, lanes, rows, [](T a) { return size(a); });
      case Op::add:
        return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return to_int(static_cast<U>(a) + static_cast<U>(b)); });
      case Op::sub: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return minus(a, b); });
      case Op::mul:
        return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return to_int(static_cast<U>(a) * static_cast<U>(b)); });
      case Op::min: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return b < a ? b : a; });
      case Op::max: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return a < b ? b : a; });
      case Op::floor_div: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return divide(a, b); });
      case Op::floor_mod: return map2<T, T>(i, c, lanes, rows, [](T a, T b) { return modulo(a, b); });
      default: return;
    }
  }

  const TileProgram& p_;
  std::byte* values_;
  std::int64_t b_ = 0, h_ = 0, q0_ = 0, k0_ = 0;
  int lanes_ = 0, first_ = 0, nq_ = 0;
  int queries_ = 0, keys_ = 0;  // real ones, without padding
  int shift_ = 0;               // inside a sum, the first key of rows(): where k-only nodes are
  const float* scores_ = nullptr;
  std::int64_t ld_ = 0, feature_ = 0;
  FeatureRows features_;
};

}  // namespace treadle::scalar

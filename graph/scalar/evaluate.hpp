#pragma once
// Scalar evaluation in double, one point at a time: the oracle of every other evaluator.

#include <treadle/graph/scalar/table.hpp>

#include <cmath>

namespace treadle::scalar {

/// The point to evaluate at. Tables are found by name; q_row and k_row are the features of the query and key (rank 1,
/// f32 or f64), for sums.
struct Bindings {
  double score = 0, x = 0;
  std::int64_t b = 0, h = 0, q = 0, k = 0, q_len = 0, k_len = 0, iteration = 0;
  std::span<const Table> tables{};
  TensorView q_row{}, k_row{};
};

/// Evaluates one function at many points. Keep one for each thread.
class Evaluator {
 public:
  constexpr Evaluator(View view, int root) {
    root_ = import(pool_, view, root);
    for (std::size_t i = 0; i < pool_.nodes.size(); ++i) {
      values_.push_back({});
      known_.push_back(0);
    }
  }

  /// A number as it is, an integer converted, a condition as 0 or 1.
  constexpr double operator()(const Bindings& at) {
    at_ = &at;
    for (char& k : known_) k = 0;
    const Value v = value(root_);
    at_ = nullptr;  // it is the caller's, who keeps it no longer
    return pool_[root_].type == Type::number ? v.number : static_cast<double>(v.integer);
  }
  constexpr bool holds(const Bindings& at) { return (*this)(at) != 0; }

 private:
  struct Value {
    double number = 0;
    std::int64_t integer = 0;
  };

  constexpr Value value(int i) {
    if (i < 0) return {};
    const auto at = static_cast<std::size_t>(i);
    if (!known_[at]) {
      values_[at] = compute(pool_[i]);
      known_[at] = 1;
    }
    return values_[at];
  }

  constexpr Value compute(const Node& n) {
    switch (n.op) {
      case Op::constant: return n.type == Type::number ? Value{n.number(), 0} : Value{0, n.integer()};
      case Op::score: return {at_->score, 0};
      case Op::x: return {at_->x, 0};
      case Op::b: return {0, at_->b};
      case Op::h: return {0, at_->h};
      case Op::q: return {0, at_->q};
      case Op::k: return {0, at_->k};
      case Op::q_len: return {0, at_->q_len};
      case Op::k_len: return {0, at_->k_len};
      case Op::iteration: return {0, at_->iteration};
      case Op::feature: return {0, feature_};
      case Op::query_value: return {entry(at_->q_row, value(n.a).integer), 0};
      case Op::key_value: return {entry(at_->k_row, value(n.a).integer), 0};
      case Op::lookup:
      case Op::searchsorted: return lookup(n);
      case Op::sum: return {sum(n.a), 0};
      case Op::where: return value(n.a).integer ? value(n.b) : value(n.c);
      case Op::logic_and: return {0, value(n.a).integer & value(n.b).integer};
      case Op::logic_or: return {0, value(n.a).integer | value(n.b).integer};
      case Op::logic_not: return {0, value(n.a).integer ^ 1};
      default: break;
    }
    const Value a = value(n.a), b = value(n.b);
    return pool_[n.a].type == Type::number ? numbers(n, a.number, b.number) : integers(n, a.integer, b.integer);
  }

  constexpr Value numbers(const Node& n, double a, double b) {
    switch (n.op) {
      case Op::neg: return {-a, 0};
      case Op::abs: return {a < 0 ? -a : a, 0};
      case Op::add: return {a + b, 0};
      case Op::sub: return {a - b, 0};
      case Op::mul: return {a * b, 0};
      case Op::div: return {a / b, 0};
      case Op::fma: return {std::fma(a, b, value(n.c).number), 0};
      case Op::min: return {b < a ? b : a, 0};
      case Op::max: return {a < b ? b : a, 0};
      case Op::exp: return {std::exp(a), 0};
      case Op::log: return {std::log(a), 0};
      case Op::tanh: return {std::tanh(a), 0};
      case Op::sqrt: return {std::sqrt(a), 0};
      case Op::sigmoid: return {1 / (1 + std::exp(-a)), 0};
      case Op::floor: return {detail::floor_of(a), 0};
      case Op::less: return {0, a < b};
      case Op::less_equal: return {0, a <= b};
      case Op::equal: return {0, a == b};
      case Op::not_equal: return {0, a != b};
      default: return {};
    }
  }

  constexpr Value integers(const Node& n, std::int64_t a, std::int64_t b) {
    switch (n.op) {
      case Op::number: return {static_cast<double>(a), 0};
      case Op::neg: return {0, wrap_sub(0, a)};
      case Op::abs: return {0, a < 0 ? wrap_sub(0, a) : a};
      case Op::add: return {0, wrap_add(a, b)};
      case Op::sub: return {0, wrap_sub(a, b)};
      case Op::mul: return {0, wrap_mul(a, b)};
      case Op::floor_div: return {0, floor_div(a, b)};
      case Op::floor_mod: return {0, floor_mod(a, b)};
      case Op::min: return {0, b < a ? b : a};
      case Op::max: return {0, a < b ? b : a};
      case Op::less: return {0, a < b};
      case Op::less_equal: return {0, a <= b};
      case Op::equal: return {0, a == b};
      case Op::not_equal: return {0, a != b};
      default: return {};
    }
  }

  static double entry(const TensorView& row, std::int64_t i) {
    if (i < 0 || i >= row.shape[0]) return 0;
    const std::int64_t at = i * row.strides[0];
    return row.dtype == DType::f64 ? row.as<const double>()[at] : static_cast<double>(row.as<const float>()[at]);
  }

  Value lookup(const Node& n) {
    const std::string_view name = pool_.view().name(n);
    const std::int64_t i = value(n.a).integer, j = value(n.b).integer;
    for (const Table& t : at_->tables) {
      if (t.name != name) continue;
      if (t.view.rank != (n.b >= 0 ? 2 : 1)) fail("a table's rank is not the number of indices of its lookup");
      if (n.op == Op::searchsorted) return {0, count_all(t.view, n.b >= 0 ? i : 0, n.b >= 0 ? j : i)};
      if (n.type == Type::integer) return {0, read_integer(t.view, i, j)};
      return {read_any(t.view, i, j), 0};
    }
    fail("a table of a lookup is not bound");
  }
  /// Without regard to the order of the entries.
  static std::int64_t count_all(const TensorView& t, std::int64_t row, std::int64_t value) {
    if (t.rank == 2 && (row < 0 || row >= t.shape[0])) return 0;
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < t.shape[t.rank == 2 ? 1 : 0]; ++i)
      count += (t.rank == 2 ? read_integer(t, row, i) : read_integer(t, i, 0)) <= value;
    return count;
  }
  /// The oracle also takes float64 tables.
  static double read_any(const TensorView& t, std::int64_t i, std::int64_t j) {
    if (t.dtype != DType::f64) return static_cast<double>(read_number(t, i, j));
    if (i < 0 || i >= t.shape[0] || (t.rank == 2 && (j < 0 || j >= t.shape[1]))) return 0;
    return t.as<const double>()[i * t.strides[0] + (t.rank == 2 ? j * t.strides[1] : 0)];
  }

  double sum(int body) {
    if (!at_->q_row.data && !at_->k_row.data) fail("a sum over features needs the rows of q and k");
    const std::int64_t features = at_->q_row.data ? at_->q_row.shape[0] : at_->k_row.shape[0];
    double total = 0;
    for (feature_ = 0; feature_ < features; ++feature_) {
      for (std::size_t i = 0; i < known_.size(); ++i)
        if (pool_.nodes[i].uses & uses_feature) known_[i] = 0;
      total += value(body).number;
    }
    return total;
  }

  Pool pool_;
  int root_ = -1;
  std::vector<Value> values_;
  std::vector<char> known_;
  const Bindings* at_ = nullptr;
  std::int64_t feature_ = 0;
};

/// One point; use an Evaluator for many.
constexpr double evaluate(View view, int root, const Bindings& at) { return Evaluator(view, root)(at); }
/// Of a pool that the root's own computation may have grown: evaluate(pool, derivative(pool, …), at).
constexpr double evaluate(const Pool& pool, int root, const Bindings& at) { return evaluate(pool.view(), root, at); }

}  // namespace treadle::scalar

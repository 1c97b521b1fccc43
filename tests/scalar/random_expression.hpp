#pragma once
// Random expressions as plain trees: evaluated naively, and built into a pool, where they are simplified.

#include <treadle/graph/scalar/build.hpp>
#include <treadle/graph/scalar/evaluate.hpp>

#include <cmath>
#include <memory>
#include <random>
#include <string>

namespace treadle::test {

using namespace treadle::scalar;

struct Tree {
  Op op = Op::constant;
  Type type = Type::integer;
  double number = 0;
  std::int64_t integer = 0;
  std::string name;
  std::vector<std::unique_ptr<Tree>> children;
};
using TreePtr = std::unique_ptr<Tree>;

/// Tables of every kind, over `batch` elements and `n` positions.
struct Tables {
  std::int64_t batch, n, blocks;
  std::vector<std::int32_t> doc, doc2, grid, lengths, cu, cu2, cu3, list, heads_grid;
  std::vector<std::uint8_t> flag, flag2;
  std::vector<float> slope, bias;
  std::vector<Table> tables;

  template <class Random>
  Tables(std::int64_t batch_size, std::int64_t positions, Random& random)
      : batch(batch_size), n(positions), blocks((positions + 7) / 8) {
    const auto integer = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
    const bool sorted = integer(0, 1) == 1;
    for (std::int64_t i = 0; i < n; ++i) doc.push_back(sorted ? static_cast<std::int32_t>(i / 13) : integer(0, 3));
    for (std::int64_t i = 0; i < n * batch; ++i) doc2.push_back(static_cast<std::int32_t>((i % n) / integer(9, 11)));
    for (std::int64_t i = 0; i < blocks * blocks; ++i) grid.push_back(integer(0, 2) == 0);
    for (std::int64_t i = 0; i < batch; ++i) lengths.push_back(integer(0, static_cast<int>(n)));
    for (std::int64_t i = 0; i < n; ++i) flag.push_back(integer(0, 5) == 0);
    for (std::int64_t i = 0; i < 6; ++i) cu.push_back(i ? cu.back() + integer(0, static_cast<int>(n / 3)) : 0);
    for (std::int64_t i = 0; i < 6; ++i) cu3.push_back(i ? cu3.back() + integer(0, static_cast<int>(n / 3)) : 0);
    for (std::int64_t i = 0; i < 12 * blocks; ++i) list.push_back(integer(-1, static_cast<int>(blocks) - 1));
    for (std::int64_t i = 0; i < 4 * blocks * blocks; ++i) heads_grid.push_back(integer(0, 2) == 0);
    for (std::int64_t i = 0; i < n * batch; ++i) flag2.push_back(integer(0, 7) == 0);
    for (std::int64_t i = 0; i < 3 * batch; ++i)
      cu2.push_back(i % 3 ? cu2.back() + integer(0, static_cast<int>(n / 2)) : integer(-3, 3));
    for (int i = 0; i < 4; ++i) slope.push_back(0.25f * static_cast<float>(integer(-4, 4)));
    for (std::int64_t i = 0; i < 4 * n; ++i) bias.push_back(0.25f * static_cast<float>(integer(-8, 8)));
    refresh();
  }
  void refresh() {
    const std::int64_t one[] = {n}, per_batch[] = {batch, n}, square[] = {blocks, blocks}, batches[] = {batch},
                       heads[] = {4}, biases[] = {4, n}, sixth[] = {6}, thirds[] = {batch, 3},
                       lists[] = {4 * blocks, 3}, by_head[] = {4 * blocks, blocks};
    tables = {{"doc", dense_view(doc.data(), i32, one)},
              {"doc2", dense_view(doc2.data(), i32, per_batch)},
              {"grid", dense_view(grid.data(), i32, square)},
              {"lengths", dense_view(lengths.data(), i32, batches)},
              {"cu", dense_view(cu.data(), i32, sixth)},
              {"cu2", dense_view(cu2.data(), i32, thirds)},
              {"cu3", dense_view(cu3.data(), i32, sixth)},
              {"list", dense_view(list.data(), i32, lists)},
              {"heads_grid", dense_view(heads_grid.data(), i32, by_head)},
              {"flag2", dense_view(flag2.data(), DType::boolean, per_batch)},
              {"flag", dense_view(flag.data(), DType::boolean, one)},
              {"slope", dense_view(slope.data(), f32, heads)},
              {"bias", dense_view(bias.data(), f32, biases)}};
  }
};

template <class Random>
class Generator {
 public:
  explicit Generator(Random& random, bool score = false, bool sums = false)
      : random_(random), score_(score), sums_(sums) {}

  TreePtr integer(int depth) {
    if (depth == 0 || pick(5) == 0) {
      static constexpr Op leaves[] = {Op::q, Op::q, Op::k,     Op::k,     Op::q,        Op::k,
                                      Op::b, Op::h, Op::q_len, Op::k_len, Op::iteration};
      if (pick(4) == 0) return constant(pick(17) - 4);
      return leaf(leaves[pick(11)], Type::integer);
    }
    switch (pick(12)) {
      case 0: return node(Op::neg, Type::integer, integer(depth - 1));
      case 1: return node(Op::abs, Type::integer, integer(depth - 1));
      case 2:
        return node(Op::floor_div, Type::integer, integer(depth - 1),
                    pick(4) ? constant(1 + pick(9)) : integer(depth - 1));
      case 3:
        return node(Op::floor_mod, Type::integer, integer(depth - 1),
                    pick(4) ? constant(1 + pick(9)) : integer(depth - 1));
      case 4: return node(Op::min, Type::integer, integer(depth - 1), integer(depth - 1));
      case 5: return node(Op::max, Type::integer, integer(depth - 1), integer(depth - 1));
      case 6:
        return node(Op::mul, Type::integer, integer(depth - 1), pick(3) ? constant(pick(7) - 3) : integer(depth - 1));
      case 7: return node(Op::where, Type::integer, condition(depth - 1), integer(depth - 1), integer(depth - 1));
      case 8: return lookup(depth);
      case 9: return node(Op::add, Type::integer, integer(depth - 1), integer(depth - 1));
      default: return node(Op::sub, Type::integer, integer(depth - 1), integer(depth - 1));
    }
  }

  /// Quarters of small integers, so that float32 and float64 agree; `smooth` adds exp and the like.
  TreePtr number(int depth, bool smooth) {
    if (sums_ && depth > 0 && pick(4) == 0) {
      sums_ = false;  // not one inside another
      TreePtr term = feature_term(3);
      sums_ = true;
      return node(Op::sum, Type::number, std::move(term));
    }
    if (depth == 0 || pick(5) == 0) {
      if (score_ && pick(2)) return leaf(Op::score, Type::number);
      switch (pick(3)) {
        case 0: return real(0.25 * (pick(33) - 16));
        case 1: return node(Op::number, Type::number, leaf(pick(2) ? Op::q : Op::k, Type::integer));
        default: {
          TreePtr t = pick(2) ? node(Op::lookup, Type::number, leaf(Op::h, Type::integer))
                              : node(Op::lookup, Type::number, leaf(Op::h, Type::integer),
                                     leaf(pick(2) ? Op::q : Op::k, Type::integer));
          t->name = t->children.size() == 1 ? "slope" : "bias";
          return t;
        }
      }
    }
    switch (pick(smooth ? 12 : 9)) {
      case 0: return node(Op::neg, Type::number, number(depth - 1, smooth));
      case 1: return node(Op::abs, Type::number, number(depth - 1, smooth));
      case 2: return node(Op::min, Type::number, number(depth - 1, smooth), number(depth - 1, smooth));
      case 3: return node(Op::max, Type::number, number(depth - 1, smooth), number(depth - 1, smooth));
      case 4: return node(Op::mul, Type::number, number(depth - 1, smooth), real(0.5 * (pick(9) - 4)));
      case 5:
        return node(Op::where, Type::number, condition(depth - 1), number(depth - 1, smooth),
                    number(depth - 1, smooth));
      case 6: return node(Op::number, Type::number, integer(1));
      case 7: return node(Op::add, Type::number, number(depth - 1, smooth), number(depth - 1, smooth));
      case 9: return node(Op::tanh, Type::number, number(depth - 1, smooth));
      case 10: return node(Op::sigmoid, Type::number, number(depth - 1, smooth));
      case 11: return node(Op::exp, Type::number, node(Op::min, Type::number, number(depth - 1, smooth), real(1.5)));
      default: return node(Op::sub, Type::number, number(depth - 1, smooth), number(depth - 1, smooth));
    }
  }

  /// What stands inside a sum.
  TreePtr feature_term(int depth) {
    if (depth == 0 || pick(6) == 0) {
      switch (pick(5)) {
        case 0: return number(1, false);
        case 1: {
          TreePtr t = node(Op::lookup, Type::number, leaf(Op::feature, Type::integer));
          t->name = "slope";
          return t;
        }
        default: return node(pick(2) ? Op::query_value : Op::key_value, Type::number, feature_index());
      }
    }
    switch (pick(7)) {
      case 0: return node(Op::add, Type::number, feature_term(depth - 1), feature_term(depth - 1));
      case 1: return node(Op::sub, Type::number, feature_term(depth - 1), feature_term(depth - 1));
      case 2: return node(Op::tanh, Type::number, feature_term(depth - 1));
      case 3: return node(Op::max, Type::number, feature_term(depth - 1), feature_term(depth - 1));
      case 4:
        return node(Op::where, Type::number,
                    node(Op::less, Type::boolean, leaf(Op::feature, Type::integer), constant(pick(4))),
                    feature_term(depth - 1), feature_term(depth - 1));
      default: return node(Op::mul, Type::number, feature_term(depth - 1), feature_term(depth - 1));
    }
  }

  TreePtr condition(int depth) {
    if (depth > 0 && pick(2)) {
      switch (pick(5)) {
        case 0: return node(Op::logic_not, Type::boolean, condition(depth - 1));
        case 1:
        case 2: return node(Op::logic_or, Type::boolean, condition(depth - 1), condition(depth - 1));
        default: return node(Op::logic_and, Type::boolean, condition(depth - 1), condition(depth - 1));
      }
    }
    static constexpr Op comparisons[] = {Op::less, Op::less_equal, Op::equal, Op::not_equal, Op::less_equal};
    const Op op = comparisons[pick(5)];
    if (pick(30) == 0) {
      TreePtr t = leaf(Op::constant, Type::boolean);
      t->integer = pick(2);
      return t;
    }
    if (pick(6) == 0) return node(op, Type::boolean, number(2, false), number(1, false));
    const int deeper = depth > 0 ? depth - 1 : 0;
    return node(op, Type::boolean, integer(deeper), pick(2) ? integer(deeper) : leaf(Op::k, Type::integer));
  }

 private:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  static TreePtr leaf(Op op, Type type) {
    auto t = std::make_unique<Tree>();
    t->op = op;
    t->type = type;
    return t;
  }
  static TreePtr constant(int v) {
    TreePtr t = leaf(Op::constant, Type::integer);
    t->integer = v;
    return t;
  }
  static TreePtr real(double v) {
    TreePtr t = leaf(Op::constant, Type::number);
    t->number = v;
    return t;
  }
  template <class... Children>
  static TreePtr node(Op op, Type type, Children... children) {
    TreePtr t = leaf(op, type);
    (t->children.push_back(std::move(children)), ...);
    return t;
  }
  TreePtr feature_index() {
    switch (pick(8)) {
      case 0: return node(Op::add, Type::integer, leaf(Op::feature, Type::integer), constant(pick(3) - 1));
      case 1: return constant(pick(4));
      case 2:
        return node(Op::floor_mod, Type::integer,
                    node(Op::add, Type::integer, leaf(Op::feature, Type::integer),
                         leaf(pick(2) ? Op::q : Op::k, Type::integer)),
                    constant(5));
      default: return leaf(Op::feature, Type::integer);
    }
  }
  TreePtr search(int depth) {
    TreePtr value = integer(depth - 1);
    TreePtr t = pick(2) ? node(Op::searchsorted, Type::integer, std::move(value))
                        : node(Op::searchsorted, Type::integer, leaf(Op::b, Type::integer), std::move(value));
    t->name = t->children.size() == 1 ? "cu" : "cu2";
    return t;
  }
  TreePtr lookup(int depth) {
    if (pick(5) == 0) return search(depth);
    static constexpr const char* names[] = {"doc", "doc2", "grid", "lengths", "flag"};
    const int which = pick(5);
    TreePtr t;
    const auto position = [&] { return pick(4) ? leaf(pick(2) ? Op::q : Op::k, Type::integer) : integer(depth - 1); };
    if (which == 1)
      t = node(Op::lookup, Type::integer, leaf(Op::b, Type::integer), position());
    else if (which == 2)
      t = node(Op::lookup, Type::integer, node(Op::floor_div, Type::integer, position(), constant(8)),
               node(Op::floor_div, Type::integer, position(), constant(8)));
    else if (which == 3)
      t = node(Op::lookup, Type::integer, leaf(Op::b, Type::integer));
    else
      t = node(Op::lookup, Type::integer, position());
    t->name = names[which];
    return t;
  }

  Random& random_;
  bool score_, sums_;
};

inline int build_tree(Pool& pool, const Tree& t) {
  int c[3] = {-1, -1, -1};
  for (std::size_t i = 0; i < t.children.size(); ++i) c[i] = build_tree(pool, *t.children[i]);
  switch (t.op) {
    case Op::constant:
      if (t.type == Type::number) return pool.constant(t.number);
      return t.type == Type::integer ? pool.constant(t.integer) : pool.constant(t.integer != 0);
    case Op::lookup: return build::lookup(pool, t.type == Type::number ? f32 : i32, t.name, c[0], c[1]);
    case Op::searchsorted:
      return t.children.size() == 1 ? build::searchsorted(pool, t.name, c[0])
                                    : build::searchsorted(pool, t.name, c[1], c[0]);
    case Op::query_value: return build::feature_of(pool, Op::q, c[0]);
    case Op::key_value: return build::feature_of(pool, Op::k, c[0]);
    case Op::sum: return build::sum(pool, c[0]);
    case Op::number: return build::to_number(pool, c[0]);
    case Op::where: return build::where(pool, c[0], c[1], c[2]);
    case Op::logic_not: return build::logic_not(pool, c[0]);
    case Op::logic_and:
    case Op::logic_or: return build::logic(pool, t.op, c[0], c[1]);
    case Op::less:
    case Op::less_equal:
    case Op::equal:
    case Op::not_equal: return build::comparison(pool, t.op, c[0], c[1]);
    case Op::floor_div: return build::arithmetic(pool, Op::div, c[0], c[1]);
    default: break;
  }
  if (t.children.empty()) return build::leaf(pool, t.op);
  if (t.children.size() == 1) return build::unary(pool, t.op, c[0]);
  return build::arithmetic(pool, t.op, c[0], c[1]);
}

struct TreeValue {
  double number = 0;
  std::int64_t integer = 0;
};

/// The meaning of a tree, written down once more and without any simplification.
inline TreeValue evaluate_tree(const Tree& t, const Bindings& at, std::int64_t feature = 0) {
  if (t.op == Op::sum) {
    double total = 0;
    for (std::int64_t i = 0; i < at.q_row.shape[0]; ++i) total += evaluate_tree(*t.children[0], at, i).number;
    return {total, 0};
  }
  TreeValue c[3];
  for (std::size_t i = 0; i < t.children.size(); ++i) c[i] = evaluate_tree(*t.children[i], at, feature);
  const auto value_of = [&](const TensorView& row) {
    const std::int64_t i = c[0].integer;
    return TreeValue{i >= 0 && i < row.shape[0] ? static_cast<double>(row.as<const float>()[i]) : 0.0, 0};
  };
  const bool of_numbers = !t.children.empty() && t.children[0]->type == Type::number;
  const auto order = [&](bool numbers, bool integers) { return TreeValue{0, of_numbers ? numbers : integers}; };
  switch (t.op) {
    case Op::constant: return {t.number, t.integer};
    case Op::score: return {at.score, 0};
    case Op::b: return {0, at.b};
    case Op::h: return {0, at.h};
    case Op::q: return {0, at.q};
    case Op::k: return {0, at.k};
    case Op::q_len: return {0, at.q_len};
    case Op::k_len: return {0, at.k_len};
    case Op::iteration: return {0, at.iteration};
    case Op::feature: return {0, feature};
    case Op::query_value: return value_of(at.q_row);
    case Op::key_value: return value_of(at.k_row);
    case Op::searchsorted:
      for (const Table& table : at.tables) {
        if (table.name != t.name) continue;
        const bool by_row = t.children.size() == 2;
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < table.view.shape[by_row ? 1 : 0]; ++i) {
          const std::int64_t entry =
              by_row ? read_integer(table.view, c[0].integer, i) : read_integer(table.view, i, 0);
          count += entry <= c[by_row ? 1 : 0].integer;
        }
        return {0, by_row && (c[0].integer < 0 || c[0].integer >= table.view.shape[0]) ? 0 : count};
      }
      return {};
    case Op::number: return {static_cast<double>(c[0].integer), 0};
    case Op::neg: return {-c[0].number, wrap_sub(0, c[0].integer)};
    case Op::abs: return {std::fabs(c[0].number), c[0].integer < 0 ? wrap_sub(0, c[0].integer) : c[0].integer};
    case Op::add: return {c[0].number + c[1].number, wrap_add(c[0].integer, c[1].integer)};
    case Op::sub: return {c[0].number - c[1].number, wrap_sub(c[0].integer, c[1].integer)};
    case Op::mul: return {c[0].number * c[1].number, wrap_mul(c[0].integer, c[1].integer)};
    case Op::min: return {std::min(c[0].number, c[1].number), std::min(c[0].integer, c[1].integer)};
    case Op::max: return {std::max(c[0].number, c[1].number), std::max(c[0].integer, c[1].integer)};
    case Op::floor_div: {
      const std::int64_t d = c[1].integer;
      return {0, d == 0 ? 0
                        : static_cast<std::int64_t>(
                              std::floor(static_cast<long double>(c[0].integer) / static_cast<long double>(d)))};
    }
    case Op::floor_mod: {
      const std::int64_t n = c[0].integer, d = c[1].integer;
      if (d == 0) return {0, 0};
      return {0,
              n - d * static_cast<std::int64_t>(std::floor(static_cast<long double>(n) / static_cast<long double>(d)))};
    }
    case Op::exp: return {std::exp(c[0].number), 0};
    case Op::tanh: return {std::tanh(c[0].number), 0};
    case Op::sigmoid: return {1 / (1 + std::exp(-c[0].number)), 0};
    case Op::less: return order(c[0].number < c[1].number, c[0].integer < c[1].integer);
    case Op::less_equal: return order(c[0].number <= c[1].number, c[0].integer <= c[1].integer);
    case Op::equal: return order(c[0].number == c[1].number, c[0].integer == c[1].integer);
    case Op::not_equal: return order(c[0].number != c[1].number, c[0].integer != c[1].integer);
    case Op::logic_and: return {0, c[0].integer && c[1].integer};
    case Op::logic_or: return {0, c[0].integer || c[1].integer};
    case Op::logic_not: return {0, !c[0].integer};
    case Op::where: return c[0].integer ? c[1] : c[2];
    case Op::lookup:
      for (const Table& table : at.tables)
        if (table.name == t.name) {
          if (t.type == Type::integer) return {0, read_integer(table.view, c[0].integer, c[1].integer)};
          return {static_cast<double>(read_number(table.view, c[0].integer, c[1].integer)), 0};
        }
      return {};
    default: return {};
  }
}

}  // namespace treadle::test

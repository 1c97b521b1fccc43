#pragma once
// What the declaration alone determines becomes a constant, if it is small.
//
//   %0 = sinusoidal_positions () {offset=0, length=4, base=10000} : f32[4, 8]
//   %1 = scale (%0) {factor=0.5}                                                →   %1 = constant () {data=[…]}
//   %2 = constant () {value=1} : f32[4, 8]
//   %3 = add (%1, %2)
//
// Folded: sinusoidal positions of static offset and length; scale, add and multiply of f32 constants; slices of
// constants. "Small" is 256 numbers for a node and 512 for all tables of a graph, so that a model's frozen tables stay
// tables and not data; a constant with one number for all elements may have any shape and stays one number. What is
// larger, or depends on parameters or lengths, the planner computes once when the model is bound (backends/reuse.hpp).
//
// Everything is computed in double and rounded to f32 once, where a run would round after each op.

#include <treadle/ops/rules.hpp>
#include <treadle/passes/remove_dead_nodes.hpp>

#include <bit>
#include <optional>
#include <vector>

namespace treadle {
namespace folding {

inline constexpr std::int64_t largest = 256;
inline constexpr std::size_t most_numbers = 512;  // of the graph's tables: what every frozen model has room for

// --- elementary functions that work in constant evaluation, to a few units in the last place of double -------------
constexpr double exp_near_zero(double x) {  // |x| ≤ ln 2 / 2
  double sum = 1, term = 1;
  for (int i = 1; i < 18; ++i) sum += term *= x / i;
  return sum;
}
constexpr double exponential(double x) {
  constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
  const auto n = static_cast<int>(x / ln2_high + (x < 0 ? -0.5 : 0.5));
  double y = exp_near_zero((x - n * ln2_high) - n * ln2_low);
  for (int i = 0; i < n; ++i) y *= 2;
  for (int i = 0; i > n; --i) y /= 2;
  return y;
}
/// x > 0: 2 atanh((m − 1) / (m + 1)) + n ln 2 with x = m·2ⁿ.
constexpr double logarithm(double x) {
  int n = 0;
  while (x > 1.5) {
    x /= 2;
    ++n;
  }
  while (x < 0.75) {
    x *= 2;
    --n;
  }
  const double z = (x - 1) / (x + 1);
  double sum = 0, power = z;
  for (int i = 1; i < 40; i += 2, power *= z * z) sum += power / i;
  return 2 * sum + n * 0.693147180559945309417232121458;
}
/// sin(x), or cos(x): reduced by multiples of π/2 in three parts, which is exact up to about 10⁶.
constexpr double sine(double x, bool cosine) {
  constexpr double half_pi = 1.57079632679489661923, part_1 = 1.57079632673412561417e+00,
                   part_2 = 6.07710050630396597660e-11, part_3 = 2.02226624879595063154e-21;
  const auto n = static_cast<std::int64_t>(x / half_pi + (x < 0 ? -0.5 : 0.5));
  const auto turns = static_cast<double>(n);
  const double r = ((x - turns * part_1) - turns * part_2) - turns * part_3;
  const std::int64_t quarter = ((n + (cosine ? 1 : 0)) % 4 + 4) % 4;
  double sum = 0, term = quarter % 2 == 0 ? r : 1;
  for (int i = quarter % 2 == 0 ? 2 : 1; i < 24; i += 2) {
    sum += term;
    term *= -r * r / (i * (i + 1.0));
  }
  return quarter < 2 ? sum : -sum;
}

// --- constants -------------------------------------------------------------------------------------------------
/// The numbers of a constant of static shape, or one number for all elements.
struct Numbers {
  std::vector<double> all;  ///< row-major; empty: `value`
  double value = 0;
  bool full = false;
  constexpr double at(std::int64_t i) const { return full ? value : all[static_cast<std::size_t>(i)]; }
};

constexpr std::optional<std::int64_t> elements(GraphView g, Value v) {
  std::int64_t n = 1;
  for (Dim d : g.shape(v)) {
    const auto size = g.dims.constant(d);
    if (!size) return std::nullopt;
    n *= *size;
  }
  return n;
}

/// What the new graph holds for v, if that is an f32 constant.
constexpr std::optional<Numbers> numbers_of(Rewriter& r, Value v) {
  const Value made = r.map(v);
  const GraphView g = r.graph();
  if (made.output != 0 || g.nodes[made.node].op != op::constant || g.info(made).dtype != f32) return std::nullopt;
  Numbers n;
  if (const Attribute* data = g.find(made.node, key::data)) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(data->number); ++i)
      n.all.push_back(std::bit_cast<double>(g.tables[static_cast<std::size_t>(data->integer + i)]));
  } else {
    n.full = true;
    n.value = g.get_number(made.node, key::value);
  }
  return n;
}

/// Puts a constant in the place of node n.
constexpr void replace(Rewriter& r, std::int32_t n, const Numbers& numbers) {
  NodeSpec s = r.beside(n, op::constant);
  s.leaf = r.old().nodes[n].leaf;
  if (numbers.full) {
    s.attributes.push_back(number(key::value, numbers.value));
  } else {
    auto& tables = r.graph().tables;
    s.attributes.push_back(data_attribute(key::data, static_cast<std::int64_t>(tables.size()),
                                          static_cast<std::int64_t>(numbers.all.size())));
    for (double x : numbers.all) tables.push_back(std::bit_cast<std::int64_t>(x));
  }
  s.outputs.push_back({f32, r.shape({n, 0})});
  r.replace({n, 0}, r.add(s));
}

/// PE(p, 2i) = sin(p / base^(2i/width)), PE(p, 2i+1) = cos(…) (Vaswani et al. 2017, §3.5).
constexpr Numbers sinusoids(std::int64_t offset, std::int64_t length, std::int64_t width, double base) {
  Numbers n;
  const double log_base = logarithm(base);
  std::vector<double> frequency;
  for (std::int64_t c = 0; c < width; ++c)
    frequency.push_back(exponential(-log_base * static_cast<double>(c - c % 2) / static_cast<double>(width)));
  for (std::int64_t p = offset; p < offset + length; ++p)
    for (std::int64_t c = 0; c < width; ++c)
      n.all.push_back(sine(static_cast<double>(p) * frequency[static_cast<std::size_t>(c)], c % 2 == 1));
  return n;
}

/// Where element i of a result stands in an operand that broadcasts to it from the right.
constexpr std::int64_t place(GraphView g, Value result, Value operand, std::int64_t i) {
  const auto shape = g.shape(result), own = g.shape(operand);
  std::int64_t at = 0, stride = 1;
  for (std::size_t k = 1; k <= shape.size(); ++k) {
    const std::int64_t size = *g.dims.constant(shape[shape.size() - k]), index = i % size;
    i /= size;
    if (k > own.size()) continue;
    const std::int64_t mine = *g.dims.constant(own[own.size() - k]);
    if (mine != 1) at += index * stride;
    stride *= mine;
  }
  return at;
}

/// The numbers of node n of the old graph, `count` of them; nothing if it cannot be folded.
constexpr std::optional<Numbers> fold(Rewriter& r, std::int32_t n, std::optional<std::int64_t> count) {
  const GraphView g = r.old();
  const op o = g.nodes[n].op;
  if (o == op::sinusoidal_positions) {
    const auto offset = g.dims.constant(static_cast<Dim>(g.get_integer(n, key::offset)));
    if (!offset || !count || *count > largest || *offset < 0 || *offset > 100'000) return std::nullopt;
    const auto shape = g.shape({n, 0});
    return sinusoids(*offset, *g.dims.constant(shape[0]), *g.dims.constant(shape[1]),
                     g.get_number(n, key::base, 10000));
  }
  if (o != op::scale && o != op::add && o != op::multiply && o != op::slice) return std::nullopt;
  const auto a = numbers_of(r, r.input(n, 0));
  if (!a) return std::nullopt;
  const bool binary = o == op::add || o == op::multiply;
  std::optional<Numbers> b;  // (g++ 12 mistakes a ?: of vectors in constant evaluation)
  if (binary) b = numbers_of(r, r.input(n, 1));
  if (binary && !b) return std::nullopt;
  const double factor = r.old().get_number(n, key::factor, 1);
  const auto combine = [&](double x, double y) {
    if (o == op::add) return x + y;
    return o == op::multiply ? x * y : o == op::scale ? x * factor : x;
  };
  if (a->full && (!binary || b->full)) {
    Numbers one;
    one.full = true;
    one.value = combine(a->value, binary ? b->value : 0);
    return one;
  }
  if (!count || *count > largest || o == op::slice) return std::nullopt;
  Numbers made;
  for (std::int64_t i = 0; i < *count; ++i) {
    const double x = a->full ? a->value : a->at(place(r.old(), {n, 0}, r.input(n, 0), i));
    const double y = !binary ? 0 : b->full ? b->value : b->at(place(r.old(), {n, 0}, r.input(n, 1), i));
    made.all.push_back(combine(x, y));
  }
  return made;
}

}  // namespace folding

constexpr Graph fold_constants(Graph g, PassReport* report = nullptr) {
  if (g.count(op::constant) + g.count(op::sinusoidal_positions) == 0)
    return nothing_to_do(std::move(g), "fold_constants", report);
  return rewrite_and_sweep(std::move(g), "fold_constants", report, [](Rewriter& r, std::int32_t n) {
    if (r.old().nodes[n].outputs.count != 1) return false;
    const auto numbers = folding::fold(r, n, folding::elements(r.old(), {n, 0}));
    if (!numbers || r.graph().tables.size() + numbers->all.size() > folding::most_numbers) return false;
    folding::replace(r, n, *numbers);
    return true;
  });
}

}  // namespace treadle

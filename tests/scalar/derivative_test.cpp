// Derivatives: their text where it is known, and central differences in float64 over random expressions.

#include "random_expression.hpp"

#include <treadle/graph/scalar/derivative.hpp>
#include <treadle/graph/scalar/print.hpp>
#include <treadle/graph/scalar/trace.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace treadle;
using namespace treadle::test;

namespace {

using Random = std::mt19937;

template <class F>
std::string by_score(F f) {
  Pool pool;
  const int root = trace_score(pool, f);
  return print(pool, derivative(pool, root, build::leaf(pool, Op::score)));
}

/// The function with node `node` replaced by `by`.
int substituted(Pool& pool, int root, int node, int by) {
  std::vector<int> target;
  for (int i = 0; i <= root; ++i) {
    Node n = pool[i];
    if (n.a >= 0) n.a = target[static_cast<std::size_t>(n.a)];
    if (n.b >= 0) n.b = target[static_cast<std::size_t>(n.b)];
    if (n.c >= 0) n.c = target[static_cast<std::size_t>(n.c)];
    target.push_back(i == node ? by : pool.share(n));
  }
  return target.back();
}

/// The compiler differentiates as well.
static_assert([] {
  Pool pool;
  const int root = trace_score(pool, [](auto s, auto, auto, auto, auto) { return s * s; });
  const int slope = derivative(pool, root, build::leaf(pool, Op::score));
  return evaluate(pool, slope, {.score = 2}) == 4;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(derivatives)

BOOST_AUTO_TEST_CASE(known_ones) {
  BOOST_TEST(by_score([](auto s, auto, auto, auto q, auto k) { return s - 0.5 * (q - k); }) == "1.0");
  BOOST_TEST(by_score([](auto, auto, auto, auto q, auto k) { return q - k; }) == "0.0");
  BOOST_TEST(by_score([](auto s, auto, auto, auto, auto) { return exp(s); }) == "exp(score)");
  BOOST_TEST(by_score([](auto s, auto, auto, auto, auto) { return log(s); }) == "1.0 / score");
  BOOST_TEST(by_score([](auto s, auto, auto, auto, auto) { return floor(s); }) == "0.0");
  BOOST_TEST(by_score([](auto s, auto, auto, auto, auto) { return max(s, 0.0); }) == "where(0.0 < score, 1.0, 0.0)");
  BOOST_TEST(by_score([](auto s, auto, auto, auto q, auto k) { return where(k <= q, 2.0 * s, s * 0.5); }) ==
             "where(k <= q, 2.0, 0.5)");
}

BOOST_AUTO_TEST_CASE(kinks_follow_the_documented_rule) {
  const auto at_zero = [](auto f) {
    Pool pool;
    const int root = trace_score(pool, f);
    return evaluate(pool, derivative(pool, root, build::leaf(pool, Op::score)), {.score = 0});
  };
  BOOST_TEST(at_zero([](auto s, auto, auto, auto, auto) { return abs(s); }) == 0);
  BOOST_TEST(at_zero([](auto s, auto, auto, auto, auto) { return max(s, 0.0); }) == 0);
  BOOST_TEST(at_zero([](auto s, auto, auto, auto, auto) { return min(0.0, s); }) == 0);
  BOOST_TEST(at_zero([](auto s, auto, auto, auto, auto) { return max(3.0 * s, s); }) == 2);
  BOOST_TEST(at_zero([](auto s, auto, auto, auto, auto) { return where(s < 0, s, 5.0 * s); }) == 5);
}

BOOST_AUTO_TEST_CASE(only_numbers_are_variables) {
  Pool pool;
  const int root = trace_score(pool, [](auto s, auto, auto, auto q, auto) { return s * q; });
  BOOST_CHECK_EXCEPTION(derivative(pool, root, build::leaf(pool, Op::q)), std::invalid_argument, [](const auto& e) {
    return std::string(e.what()) == "only a number is a variable: the score, x, q[i], k[i] or a lookup<f32>";
  });
}

BOOST_AUTO_TEST_CASE(a_term_of_a_sum_has_a_derivative_for_each_feature) {
  // Additive attention: the gradient of v's entry i is tanh(q[i] + k[i]).
  Pool pool;
  const int root = trace_score(pool, [](auto, auto, auto, auto q, auto k) {
    return 2.0 * sum(q, [&](auto i) { return lookup("v", i) * tanh(q[i] + k[i]); });
  });
  const std::vector<int> tables = lookups(pool, root);
  BOOST_REQUIRE_EQUAL(tables.size(), 1u);
  BOOST_TEST(print(pool, derivative(pool, root, tables[0])) == "tanh(q[i] + k[i]) * 2.0");
}

/// A tree over every operation, and its derivative by the score or by one lookup, against (f(x + h) − f(x − h)) / 2h;
/// where the two one-sided differences disagree there is a kink or a jump, and any of them may be right.
BOOST_AUTO_TEST_CASE(random_expressions_against_central_differences) {
  Random random(7);
  const auto below = [&](std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random); };
  std::uniform_real_distribution<double> real(-1.5, 1.5);
  int compared = 0, nonzero = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const std::int64_t n = 1 + below(20), features = below(4);
    const Tables tables(2, n, random);
    std::vector<float> rows[2];
    for (auto& row : rows)
      for (std::int64_t f = 0; f <= features; ++f) row.push_back(static_cast<float>(real(random)));
    Generator<Random> generate(random, true, true);
    const TreePtr tree = generate.number(4, true);
    Pool pool;
    int root = build_tree(pool, *tree);
    // What the trees do not have.
    switch (trial % 5) {
      case 0:
        root = build::unary(pool, Op::log,
                            build::arithmetic(pool, Op::add, build::unary(pool, Op::abs, root), pool.constant(0.7)));
        break;
      case 1:
        root = build::unary(
            pool, Op::sqrt,
            build::arithmetic(pool, Op::add, build::arithmetic(pool, Op::mul, root, root), pool.constant(0.3)));
        break;
      case 2:
        root = build::arithmetic(
            pool, Op::div, root,
            build::arithmetic(pool, Op::add, build::unary(pool, Op::exp, build::leaf(pool, Op::score)),
                              pool.constant(0.5)));
        break;
      case 3: root = build::arithmetic(pool, Op::mul, root, build::unary(pool, Op::floor, root)); break;
      default: break;
    }
    std::vector<int> variables = lookups(pool, root);
    variables.push_back(build::leaf(pool, Op::score));
    const int wrt = variables[static_cast<std::size_t>(below(static_cast<std::int64_t>(variables.size())))];
    if (pool[wrt].uses & uses_feature) continue;
    Bindings at{.score = real(random),
                .b = below(2),
                .h = below(3),
                .q = below(n),
                .k = below(n),
                .q_len = n,
                .k_len = n,
                .iteration = 1,
                .tables = tables.tables,
                .q_row = dense_view(rows[0].data(), f32, {&features, 1}),
                .k_row = dense_view(rows[1].data(), f32, {&features, 1})};
    const double slope = evaluate(pool, derivative(pool, root, wrt), at);
    constexpr double h = 1e-6;
    const auto moved = [&](double by) {
      const int there = build::arithmetic(pool, Op::add, wrt, pool.constant(by));
      return evaluate(pool, substituted(pool, root, wrt, there), at);
    };
    const double before = moved(-h), here = evaluate(pool, root, at), after = moved(h);
    if (!std::isfinite(before + here + after) || std::fabs(here) > 1e4) continue;
    const double left = (here - before) / h, right = (after - here) / h, size = 1 + std::fabs(left) + std::fabs(right);
    if (std::fabs(left - right) > 1e-3 * size) continue;
    ++compared;
    nonzero += slope != 0;
    BOOST_REQUIRE_MESSAGE(std::fabs(slope - (left + right) / 2) <= 2e-4 * size,
                          print(pool, root)
                              << " by " << print(pool, wrt) << ": " << slope << ", not " << (left + right) / 2);
  }
  BOOST_TEST(compared > 900);
  BOOST_TEST(nonzero > 400);
}

BOOST_AUTO_TEST_SUITE_END()

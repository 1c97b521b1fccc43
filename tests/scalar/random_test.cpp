// Properties over random expressions: simplification keeps the meaning, text comes back, tiles agree with the oracle,
// and interval verdicts hold at every point.

#include "random_expression.hpp"

#include <treadle/backends/simd/score_tile.hpp>
#include <treadle/graph/scalar/interval.hpp>
#include <treadle/graph/scalar/parse.hpp>
#include <treadle/graph/scalar/print.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace treadle;
using namespace treadle::test;

namespace {

using Random = std::mt19937;

struct Case {
  Extents extents;
  Tables tables;
  std::vector<float> queries, keys;  // [length, features]

  explicit Case(Random& random) : extents(make(random)), tables(2, std::max(extents.q_len, extents.k_len), random) {
    std::uniform_int_distribution<int> quarters(-6, 6);
    for (std::int64_t i = 0; i < extents.q_len * extents.features; ++i)
      queries.push_back(0.25f * static_cast<float>(quarters(random)));
    for (std::int64_t i = 0; i < extents.k_len * extents.features; ++i)
      keys.push_back(0.25f * static_cast<float>(quarters(random)));
  }
  TensorView row(const std::vector<float>& from, std::int64_t at) const {
    static float nothing = 0;  // a row without features is one all the same
    float* data = extents.features ? const_cast<float*>(from.data()) + at * extents.features : &nothing;
    return dense_view(data, f32, {&extents.features, 1});
  }
  static Extents make(Random& random) {
    std::uniform_int_distribution<std::int64_t> length(1, 90);
    const std::int64_t q_len = length(random), k_len = length(random);
    return {.batch = 2, .heads = 3, .q_len = q_len, .k_len = k_len, .iteration = 1, .features = length(random) % 7};
  }
  Bindings point(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k, double score = 0) const {
    return {.score = score,
            .b = b,
            .h = h,
            .q = q,
            .k = k,
            .q_len = extents.q_len,
            .k_len = extents.k_len,
            .iteration = extents.iteration,
            .tables = tables.tables,
            .q_row = row(queries, q),
            .k_row = row(keys, k)};
  }
};

std::int64_t below(Random& random, std::int64_t n) {
  return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_expressions)

BOOST_AUTO_TEST_CASE(simplification_keeps_the_meaning) {
  Random random(1);
  for (int trial = 0; trial < 4000; ++trial) {
    const Case c(random);
    const bool score = trial % 3 == 0;
    Generator<Random> generate(random, score);
    const TreePtr tree = score ? generate.number(4, false) : generate.condition(4);
    Pool pool;
    const int root = build_tree(pool, *tree);
    Evaluator evaluator(pool, root);
    for (int i = 0; i < 30; ++i) {
      const Bindings at = c.point(below(random, 2), below(random, 3), below(random, c.extents.q_len),
                                  below(random, c.extents.k_len), 0.25 * static_cast<double>(below(random, 41) - 20));
      const TreeValue expected = evaluate_tree(*tree, at);
      const double got = evaluator(at);
      const double want = score ? expected.number : static_cast<double>(expected.integer);
      BOOST_REQUIRE_MESSAGE(got == want, print(pool, root) << " gave " << got << ", not " << want);
    }
  }
}

BOOST_AUTO_TEST_CASE(text_comes_back) {
  Random random(2);
  for (int trial = 0; trial < 4000; ++trial) {
    Generator<Random> generate(random, trial % 2 == 0, trial % 2 == 0);
    const TreePtr tree = trial % 2 == 0 ? generate.number(5, true) : generate.condition(5);
    Pool pool;
    const int root = build_tree(pool, *tree);
    const std::string text = print(pool, root);
    const Parsed again = parse(pool, text);
    BOOST_REQUIRE_MESSAGE(again, text << ": " << again.error.what << " at " << again.error.position);
    BOOST_REQUIRE_MESSAGE(again.root == root, text << " came back as " << print(pool, again.root));
    Pool fresh;
    const int fresh_root = parse(fresh, text).root;  // before a view of the pool is taken
    BOOST_REQUIRE_EQUAL(print(fresh, fresh_root), text);
    // Copies into a pool with other contents read the same.
    Pool other;
    other.share({.op = Op::sub, .type = Type::integer, .a = build::leaf(other, Op::k), .b = build::leaf(other, Op::q)});
    const int other_root = import(other, pool, root);
    BOOST_REQUIRE_EQUAL(print(other, other_root), text);
  }
}

BOOST_AUTO_TEST_CASE(score_tiles_agree_with_the_oracle) {
  struct Plain {};
  Random random(3);
  for (int trial = 0; trial < 600; ++trial) {
    const Case c(random);
    Generator<Random> generate(random, true, trial % 2 == 0);
    const TreePtr tree = generate.number(4, true);
    Pool pool;
    const int root = build_tree(pool, *tree);
    const TileProgram program = compile(pool, root, c.extents, c.tables.tables);
    Evaluator evaluator(pool, root);
    std::vector<std::uint64_t> workspace(simd::score_workspace_bytes(program) / 8);
    const std::int64_t q0 = below(random, c.extents.q_len), k0 = below(random, c.extents.k_len);
    const std::int64_t nq = c.extents.q_len - q0, nk = c.extents.k_len - k0, ld = nq + 3;
    std::vector<float> scores(static_cast<std::size_t>(ld * nk));
    for (float& s : scores) s = 0.25f * static_cast<float>(below(random, 41) - 20);
    std::vector<float> before = scores;
    const std::int64_t b = below(random, 2), h = below(random, 3);
    const std::int64_t features = c.extents.features;
    std::vector<float> turned(static_cast<std::size_t>(features * ld));
    for (std::int64_t q = 0; q < nq; ++q)
      for (std::int64_t f = 0; f < features; ++f)
        turned[static_cast<std::size_t>(f * ld + q)] = c.queries[static_cast<std::size_t>((q0 + q) * features + f)];
    simd::apply_score<Plain>(program, scores.data(), ld, b, h, q0, nq, k0, nk, workspace.data(),
                             {turned.data(), ld, c.keys.data(), features});
    for (std::int64_t k = 0; k < nk; ++k)
      for (std::int64_t q = 0; q < ld; ++q) {
        const auto at = static_cast<std::size_t>(k * ld + q);
        if (q >= nq) {
          BOOST_REQUIRE_EQUAL(scores[at], before[at]);  // beyond the tile nothing is written
          continue;
        }
        const double want = evaluator(c.point(b, h, q0 + q, k0 + k, static_cast<double>(before[at])));
        const double error = std::fabs(static_cast<double>(scores[at]) - want);
        BOOST_REQUIRE_MESSAGE(error <= 1e-4 * (1 + std::fabs(want)), print(pool, root)
                                                                         << " gave " << scores[at] << ", not " << want);
      }
  }
}

BOOST_AUTO_TEST_CASE(verdicts_hold_at_every_point) {
  Random random(4);
  int decided = 0, total = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const Case c(random);
    Generator<Random> generate(random);
    const TreePtr tree = generate.condition(3);
    Pool pool;
    const int root = build_tree(pool, *tree);
    const TileProgram program = compile(pool, root, c.extents, c.tables.tables);
    Evaluator evaluator(pool, root);
    for (int i = 0; i < 6; ++i) {
      const std::int64_t q0 = below(random, c.extents.q_len), k0 = below(random, c.extents.k_len);
      const std::int64_t q1 = std::min(c.extents.q_len, q0 + 1 + below(random, 12));
      const std::int64_t k1 = std::min(c.extents.k_len, k0 + 1 + below(random, 12));
      const std::int64_t b0 = below(random, 2), h0 = below(random, 3);
      const std::int64_t b1 = b0 + 1 + below(random, 2 - b0), h1 = h0 + 1 + below(random, 3 - h0);
      const Verdict v = classify(program, {b0, b1, h0, h1, q0, q1, k0, k1});
      ++total;
      if (v == Verdict::undecided) continue;
      ++decided;
      for (std::int64_t b = b0; b < b1; ++b)
        for (std::int64_t h = h0; h < h1; ++h)
          for (std::int64_t q = q0; q < q1; ++q)
            for (std::int64_t k = k0; k < k1; ++k)
              BOOST_REQUIRE_MESSAGE(evaluator.holds(c.point(b, h, q, k)) == (v == Verdict::full), print(pool, root));
    }
  }
  BOOST_TEST_MESSAGE("decided " << decided << " of " << total);
  BOOST_TEST(decided > total / 3);
}

BOOST_AUTO_TEST_SUITE_END()

// Recurrent attention against other forms of its equations.

#include "arrays.hpp"

#include <treadle/ops/recurrent_layers.hpp>

using namespace treadle;
using namespace treadle::test;
namespace ref = treadle::reference;

// In the compiler too.
static_assert([] {
  Builder b;
  const Node x = b.input("x", f32, {dim("batch"), dim("seq"), 8});
  RetentionLayerOptions o{.heads = 2};
  o.decays.push_back(0.5);
  o.decays.push_back(0.25);
  const Node y = retention_layer("r", x, o);
  b.output("y", gated_delta_layer("d", gated_linear_layer("g", y, {.heads = 2}), {.heads = 2}));
  const Graph g = b.finish();
  return !g.error && g.count(op::recurrent_attention) == 3;
}());

BOOST_AUTO_TEST_SUITE(recurrent_attention_formula)

/// (Q Kᵀ ∘ D) V with D_ij = Π_(j < s ≤ i) gate_s, by channel.
BOOST_AUTO_TEST_CASE(gates_are_their_quadratic_form) {
  const auto q = random_array({1, 2, 9, 3}, 1), k = random_array({1, 2, 9, 3}, 2), v = random_array({1, 2, 9, 4}, 3);
  auto gate = random_array({1, 2, 9, 3}, 4);
  for (double& x : gate.data) x = -std::abs(x);
  Array<double> state = ref::zeros<double>({1, 2, 3, 4});
  const auto got = ref::recurrent_attention<double>({q, k, v, &gate, nullptr, 0.5}, state);
  const auto at = [](const Array<double>& a, std::size_t h, std::size_t i, std::size_t d) {
    return a.data[(h * 9 + i) * static_cast<std::size_t>(a.shape[3]) + d];
  };
  Array<double> want = ref::zeros<double>(v.shape);
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t i = 0; i < 9; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        for (std::size_t d = 0; d < 3; ++d) {
          double decay = 0;
          for (std::size_t s = j + 1; s <= i; ++s) decay += at(gate, h, s, d);
          for (std::size_t e = 0; e < 4; ++e)
            want.data[(h * 9 + i) * 4 + e] += 0.5 * at(q, h, i, d) * at(k, h, j, d) * std::exp(decay) * at(v, h, j, e);
        }
  check_close(got, want);
}

/// S ← (I − β k kᵀ) S + β k vᵀ; with unit keys that are orthogonal each value is stored and found again.
BOOST_AUTO_TEST_CASE(the_delta_rule_replaces_values) {
  const auto k = array({1, 1, 4, 2}, {1, 0, 0, 1, 1, 0, 0, 1}), v = array({1, 1, 4, 1}, {5, 6, 7, 8}),
             beta = array({1, 1, 4}, {1, 1, 1, 0.5});
  Array<double> state = ref::zeros<double>({1, 1, 2, 1});
  check_close(ref::recurrent_attention<double>({k, k, v, nullptr, &beta, 1}, state), array({1, 1, 4, 1}, {5, 6, 7, 7}));
  check_close(state, array({1, 1, 2, 1}, {7, 7}));
}

BOOST_AUTO_TEST_CASE(a_state_is_carried_wherever_it_is_split) {
  const auto q = random_array({1, 2, 7, 3}, 1), k = random_array({1, 1, 7, 3}, 2), v = random_array({1, 1, 7, 2}, 3),
             beta = random_array({1, 2, 7}, 5);
  const auto gate = array({1, 2, 1, 1}, {-0.5, -0.1});
  Array<double> whole = ref::zeros<double>({1, 2, 3, 2});
  const auto want = ref::recurrent_attention<double>({q, k, v, &gate, &beta, 1}, whole);
  for (std::int64_t split = 0; split <= 7; ++split) {
    Array<double> state = ref::zeros<double>({1, 2, 3, 2});
    const auto part = [&](std::int64_t first, std::int64_t count) {
      const auto sq = ref::slice(q, 2, first, count), sk = ref::slice(k, 2, first, count),
                 sv = ref::slice(v, 2, first, count), sb = ref::slice(beta, 2, first, count);
      return ref::recurrent_attention<double>({sq, sk, sv, &gate, &sb, 1}, state);
    };
    const auto before = part(0, split), after = part(split, 7 - split);
    check_close(ref::concatenate<double>({&before, &after}, 2), want);
    check_close(state, whole);
  }
}

BOOST_AUTO_TEST_CASE(logarithms_in_the_compiler) {
  static_assert(natural_log(1) == 0);
  for (const double x : {1e-12, 0.3, 0.96875, 0.999, 1.5, 10.0, 1e9})
    BOOST_TEST(std::abs(natural_log(x) - std::log(x)) <= 1e-15 * std::max(1.0, std::abs(std::log(x))));
  BOOST_TEST(retention_decays(3) == (std::vector<double>{0.96875, 0.984375, 0.9921875}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

// Attention in the reference: empty rows, masked NaN, alignment with unequal lengths, grouped heads, sinks, linear
// attention.

#include "arrays.hpp"

#include <treadle/ops/rules.hpp>

#include <limits>

using namespace treadle;
using namespace treadle::test;
namespace ref = treadle::reference;

namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Every score is 0, so the output is the mean of the values that a query may see: it shows which they are.
Array<double> mean_of_visible(const Mask& m, std::int64_t q_len, std::int64_t k_len) {
  Builder g;
  const Node q = g.input("q", f32, {1, 1, q_len, 1}), k = g.input("k", f32, {1, 1, k_len, 1}),
             v = g.input("v", f32, {1, 1, k_len, 1});
  g.output("out", attention(q, k, v, {.mask = m}));
  const Graph graph = g.finish();
  BOOST_REQUIRE(!graph.error);
  Array<double> values = ref::zeros<double>({1, 1, k_len, 1});
  for (std::int64_t i = 0; i < k_len; ++i)
    values.data[static_cast<std::size_t>(i)] = std::pow(10.0, static_cast<double>(i));
  const ref::Tensors<double> inputs{
      {"q", ref::zeros<double>({1, 1, q_len, 1})}, {"k", ref::zeros<double>({1, 1, k_len, 1})}, {"v", values}};
  return ref::evaluate<double>(graph, {}, inputs, ref::Tensors<double>{}).at("out");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_attention)

BOOST_AUTO_TEST_CASE(weights_are_the_softmax_of_scaled_scores) {
  // scores 0.5·2·{0, ln 3 / 1} → weights 1/4 and 3/4
  const auto q = array({1, 1, 1, 1}, {2}), k = array({1, 1, 2, 1}, {0, std::log(3.0)}),
             v = array({1, 1, 2, 2}, {4, 0, 0, 8});
  const auto r = ref::attention<double>({.q = q, .k = k, .v = v, .scale = 0.5});
  check_close(r.out, array({1, 1, 1, 2}, {1, 6}));
  check_close(r.lse, array({1, 1, 1}, {std::log(4.0)}));
}

BOOST_AUTO_TEST_CASE(a_row_without_keys_gives_zero_and_minus_infinity) {
  const auto q = array({1, 1, 2, 1}, {1, 1}), k = array({1, 1, 2, 1}, {1, 1}), v = array({1, 1, 2, 1}, {3, 5});
  const auto mask = array({1, 1, 2, 2}, {0, 0, 0, 1});
  const auto r = ref::attention<double>({.q = q, .k = k, .v = v, .mask = &mask});
  check_close(r.out, array({1, 1, 2, 1}, {0, 5}));
  check_close(r.lse, array({1, 1, 2}, {-infinity, 1}));
  const auto bias = array({2, 2}, {-infinity, -infinity, 0, 0});
  check_close(ref::attention<double>({.q = q, .k = k, .v = v, .bias = &bias}).out, array({1, 1, 2, 1}, {0, 4}));
  const auto none = ref::attention<double>({.q = q, .k = array({1, 1, 0, 1}, {}), .v = array({1, 1, 0, 1}, {})});
  check_close(none.out, array({1, 1, 2, 1}, {0, 0}));
  check_close(none.lse, array({1, 1, 2}, {-infinity, -infinity}));
}

BOOST_AUTO_TEST_CASE(masked_nan_reaches_nothing) {
  const auto q = array({1, 1, 1, 1}, {1}), k = array({1, 1, 3, 1}, {1, not_a_number, 1}),
             v = array({1, 1, 3, 1}, {3, not_a_number, 5});
  const auto mask = array({1, 3}, {1, 0, 1});
  check_close(ref::attention<double>({.q = q, .k = k, .v = v, .mask = &mask}).out, array({1, 1, 1, 1}, {4}));
  const auto lengths = array({1}, {1});
  check_close(ref::linear_attention(q, k, v, &lengths, activation::elu_plus_one, false, 0), array({1, 1, 1, 1}, {3}));
  // What is not masked shows.
  BOOST_TEST(std::isnan(ref::attention<double>({.q = q, .k = k, .v = v}).out.data[0]));
}

BOOST_AUTO_TEST_CASE(causal_masks_with_unequal_lengths) {
  const auto one = [](Shape shape, std::vector<double> data) { return array(std::move(shape), std::move(data)); };
  // More keys: the last query stands at the last key.
  check_close(mean_of_visible(causal, 2, 3), one({1, 1, 2, 1}, {11.0 / 2, 111.0 / 3}), 1e-9);
  check_close(mean_of_visible(causal(mask::Alignment::top_left), 2, 3), one({1, 1, 2, 1}, {1, 11.0 / 2}), 1e-9);
  // More queries: the first see nothing.
  check_close(mean_of_visible(causal, 3, 2), one({1, 1, 3, 1}, {0, 1, 11.0 / 2}), 1e-9);
  // Windows are inclusive on both sides.
  check_close(mean_of_visible(window(1, 0), 3, 3), one({1, 1, 3, 1}, {1, 11.0 / 2, 110.0 / 2}), 1e-9);
  check_close(mean_of_visible(window(0, 1), 2, 4), one({1, 1, 2, 1}, {1100.0 / 2, 1000}), 1e-9);
  check_close(mean_of_visible(window(0, 0) | global_tokens({0}), 3, 3),
              one({1, 1, 3, 1}, {111.0 / 3, 11.0 / 2, 101.0 / 2}), 1e-9);
}

BOOST_AUTO_TEST_CASE(grouped_heads_share_a_key_head) {
  const auto q = random_array({2, 6, 3, 4}, 1), k = random_array({2, 2, 5, 4}, 2), v = random_array({2, 2, 5, 3}, 3);
  // The same with every key head written three times.
  Array<double> wide_k = ref::zeros<double>({2, 6, 5, 4}), wide_v = ref::zeros<double>({2, 6, 5, 3});
  const auto repeat_heads = [](const Array<double>& from, Array<double>& to, std::size_t size) {
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t h = 0; h < 6; ++h)
        for (std::size_t i = 0; i < size; ++i) to.data[(b * 6 + h) * size + i] = from.data[(b * 2 + h / 3) * size + i];
  };
  repeat_heads(k, wide_k, 20);
  repeat_heads(v, wide_v, 15);
  check_close(ref::attention<double>({.q = q, .k = k, .v = v}).out,
              ref::attention<double>({.q = q, .k = wide_k, .v = wide_v}).out);
  check_close(ref::linear_attention<double>(q, k, v, nullptr, activation::elu_plus_one, true, 0),
              ref::linear_attention<double>(q, wide_k, wide_v, nullptr, activation::elu_plus_one, true, 0));
}

BOOST_AUTO_TEST_CASE(a_sink_joins_the_denominator_only) {
  const auto q = array({1, 2, 1, 1}, {0, 0}), k = array({1, 2, 1, 1}, {0, 0}), v = array({1, 2, 1, 1}, {8, 8});
  const auto sink = array({2}, {0, std::log(3.0)});
  const auto r = ref::attention<double>({.q = q, .k = k, .v = v, .sink = &sink});
  check_close(r.out, array({1, 2, 1, 1}, {4, 2}));
  check_close(r.lse, array({1, 2, 1}, {0, 0}));
  const auto huge = array({2}, {1e4, -1e4});
  check_close(ref::attention<double>({.q = q, .k = k, .v = v, .sink = &huge}).out, array({1, 2, 1, 1}, {0, 8}));
}

BOOST_AUTO_TEST_CASE(linear_attention_is_its_quadratic_form) {
  const auto q = random_array({1, 2, 7, 3}, 4), k = random_array({1, 2, 7, 3}, 5), v = random_array({1, 2, 7, 2}, 6);
  for (const bool is_causal : {false, true}) {
    const auto phi_q = ref::activate(q, activation::elu_plus_one), phi_k = ref::activate(k, activation::elu_plus_one);
    Array<double> weights = ref::matmul(phi_q, ref::transpose(phi_k, {0, 1, 3, 2}));
    for (std::size_t i = 0; i < weights.data.size(); ++i) {
      const std::size_t row = i / 7 % 7, column = i % 7;
      if (is_causal && column > row) weights.data[i] = 0;
    }
    for (std::size_t r = 0; r < weights.data.size(); r += 7) {
      double sum = 0.125;  // eps
      for (std::size_t c = 0; c < 7; ++c) sum += weights.data[r + c];
      for (std::size_t c = 0; c < 7; ++c) weights.data[r + c] /= sum;
    }
    check_close(ref::linear_attention<double>(q, k, v, nullptr, activation::elu_plus_one, is_causal, 0.125),
                ref::matmul(weights, v));
  }
  // relu features of a negative query: numerator and denominator are 0.
  const auto dead = ref::linear_attention<double>(array({1, 1, 1, 1}, {-1}), array({1, 1, 1, 1}, {1}),
                                                  array({1, 1, 1, 1}, {1}), nullptr, activation::relu, false, 0);
  check_close(dead, array({1, 1, 1, 1}, {0}));
}

BOOST_AUTO_TEST_CASE(float_and_double_agree) {
  const auto q = random_array<float>({2, 2, 9, 8}, 7), k = random_array<float>({2, 2, 11, 8}, 8),
             v = random_array<float>({2, 2, 11, 5}, 9);
  const auto single = ref::attention<float>({.q = q, .k = k, .v = v, .scale = 0.35});
  const auto q2 = to_double(q), k2 = to_double(k), v2 = to_double(v);
  const auto twice = ref::attention<double>({.q = q2, .k = k2, .v = v2, .scale = 0.35});
  check_close(to_double(single.out), twice.out, 2e-6);
  check_close(to_double(single.lse), twice.lse, 2e-6);
}

BOOST_AUTO_TEST_SUITE_END()

// The formulas of ops/*.cpp against values that were worked out by hand or are known constants.

#include "arrays.hpp"

#include <limits>
#include <stdexcept>

using namespace treadle;
using namespace treadle::test;
namespace ref = treadle::reference;

namespace {
const double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();
}  // namespace

BOOST_AUTO_TEST_SUITE(formulas)

BOOST_AUTO_TEST_CASE(add_and_multiply_broadcast_from_the_right) {
  const auto a = array({2, 3}, {1, 2, 3, 4, 5, 6});
  check_close(ref::add(a, array({3}, {10, 20, 30})), array({2, 3}, {11, 22, 33, 14, 25, 36}));
  check_close(ref::add(array({3}, {10, 20, 30}), a), array({2, 3}, {11, 22, 33, 14, 25, 36}));
  check_close(ref::multiply(a, array({2, 1}, {2, 3})), array({2, 3}, {2, 4, 6, 12, 15, 18}));
  check_close(ref::multiply(array({3, 1}, {1, 2, 3}), array({1, 2}, {5, 7})), array({3, 2}, {5, 7, 10, 14, 15, 21}));
  check_close(ref::multiply(array({1}, {-1}), array({2}, {-58, -56})), array({2}, {58, 56}));
  check_close(ref::add(array({0, 3}, {}), array({3}, {1, 2, 3})), array({0, 3}, {}));
  check_close(ref::scale(a, 0.5), array({2, 3}, {0.5, 1, 1.5, 2, 2.5, 3}));
}

BOOST_AUTO_TEST_CASE(activations_have_their_known_values) {
  const auto value = [](activation f, double x) { return ref::activate(x, f); };
  BOOST_TEST(value(activation::relu, -2.0) == 0.0);
  BOOST_TEST(value(activation::relu, 3.0) == 3.0);
  BOOST_TEST(std::abs(value(activation::gelu, 1.0) - 0.8413447460685429) < 1e-15);
  BOOST_TEST(std::abs(value(activation::gelu_tanh, 1.0) - 0.8411919906082768) < 1e-15);
  BOOST_TEST(std::abs(value(activation::silu, 1.0) - 0.7310585786300049) < 1e-15);
  BOOST_TEST(std::abs(value(activation::sigmoid, -1.0) - 0.2689414213699951) < 1e-15);
  BOOST_TEST(value(activation::elu_plus_one, 2.0) == 3.0);
  BOOST_TEST(std::abs(value(activation::elu_plus_one, -1.0) - 0.36787944117144233) < 1e-15);
  BOOST_TEST(value(activation::none, -7.5) == -7.5);
  // tanh by a quotient of exponentials would give inf / inf here.
  BOOST_TEST(ref::activate(1e4f, activation::gelu_tanh) == 1e4f);
  BOOST_TEST(ref::activate(-1e4f, activation::gelu_tanh) == 0.0f);
  BOOST_TEST(std::isnan(value(activation::relu, not_a_number)));
  BOOST_TEST(std::abs(value(activation::softplus, 0.0) - std::log(2.0)) < 1e-15);
  BOOST_TEST(value(activation::softplus, 1000.0) == 1000.0);
  BOOST_TEST(std::abs(value(activation::softplus, -50.0) / std::exp(-50.0) - 1) < 1e-15);
  BOOST_TEST(value(activation::elu, 2.0) == 2.0);
  BOOST_TEST(std::abs(value(activation::elu, -1.0) + 0.6321205588285577) < 1e-15);
  BOOST_TEST(std::abs(ref::activate(-1.0, activation::elu, 2.0) + 1.2642411176571153) < 1e-15);
  BOOST_TEST(value(activation::squared_relu, 3.0) == 9.0);
  BOOST_TEST(value(activation::squared_relu, -3.0) == 0.0);
  BOOST_TEST(std::abs(value(activation::quick_gelu, 1.0) - 0.8457957659328212) < 1e-15);
  BOOST_TEST(value(activation::log, 1.0) == 0.0);
  check_close(ref::softcap(array({3}, {0, 1000, -50}), 50), array({3}, {0, 50, -50 * std::tanh(1)}));
}

BOOST_AUTO_TEST_CASE(softmax_of_a_row_without_a_choice_is_zero) {
  const auto x = array({4, 2}, {0, std::log(3.0), -infinity, -infinity, -infinity, 5, 1000, 1000});
  check_close(ref::softmax(x), array({4, 2}, {0.25, 0.75, 0, 0, 0, 1, 0.5, 0.5}), 1e-15);
  BOOST_TEST(std::isnan(ref::softmax(array({1, 2}, {not_a_number, 1})).data[1]));
}

BOOST_AUTO_TEST_CASE(log_softmax_and_logsumexp_of_large_and_of_empty_rows) {
  const auto x = array({3, 3}, {1000, 1001, 1002, -infinity, -infinity, -infinity, -infinity, 5, -infinity});
  const double rest = std::log(1 + std::exp(-1) + std::exp(-2));
  check_close(ref::logsumexp(x), array({3}, {1002 + rest, -infinity, 5}), 1e-12);
  check_close(ref::log_softmax(x),
              array({3, 3}, {-2 - rest, -1 - rest, -rest, -infinity, -infinity, -infinity, -infinity, 0, -infinity}),
              1e-12);
  check_close(ref::logsumexp(array({2, 0}, {})), array({2}, {-infinity, -infinity}));
  check_close(ref::logsumexp(array({2}, {infinity, 0})), array({}, {infinity}));
  BOOST_TEST(std::isnan(ref::logsumexp(array({2}, {not_a_number, 0})).data[0]));
}

BOOST_AUTO_TEST_CASE(argmax_takes_the_first_of_equal_ones_and_the_first_nan) {
  check_close(ref::argmax(array({3, 3}, {1, 7, 7, -infinity, -infinity, -infinity, 2, not_a_number, infinity})),
              array({3}, {1, 0, 1}));
  BOOST_CHECK_THROW(ref::argmax(array({2, 0}, {})), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(cross_entropy_reduces_over_the_rows_that_count) {
  const auto logits = array({3, 2}, {0, std::log(3.0), 5, 5, 1, 2}), ids = array({3}, {1, 0, -100});
  const double a = std::log(4.0 / 3.0), b = std::log(2.0);
  check_close(ref::cross_entropy(logits, ids, reduction::none, -100), array({3}, {a, b, 0}));
  check_close(ref::cross_entropy(logits, ids, reduction::sum, -100), array({}, {a + b}));
  check_close(ref::cross_entropy(logits, ids, reduction::mean, -100), array({}, {(a + b) / 2}));
  const auto none = array({3}, {7, 7, 7});
  BOOST_TEST(std::isnan(ref::cross_entropy(logits, none, reduction::mean, 7).data[0]));
  BOOST_TEST(ref::cross_entropy(logits, none, reduction::sum, 7).data[0] == 0.0);
  BOOST_CHECK_THROW(ref::cross_entropy(logits, none, reduction::sum, -100), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(gather_puts_the_ids_in_the_place_of_the_axis) {
  const auto x = array({2, 3}, {1, 2, 3, 4, 5, 6});
  check_close(ref::gather(x, array({2}, {1, 0}), 0, 0), array({2, 3}, {4, 5, 6, 1, 2, 3}));
  check_close(ref::gather(x, array({2, 2}, {2, 0, 1, 1}), 1, 0), array({2, 2, 2}, {3, 1, 2, 2, 6, 4, 5, 5}));
  check_close(ref::gather(x, array({2, 1}, {2, 0}), 1, 1), array({2, 1}, {3, 4}));
  check_close(ref::gather(x, array({2}, {2, 0}), 1, 1), array({2}, {3, 4}));
  BOOST_CHECK_THROW(ref::gather(x, array({1}, {2}), 0, 0), std::out_of_range);
  BOOST_CHECK_THROW(ref::gather(x, array({1}, {-1}), 0, 0), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(pooling_counts_valid_positions_only) {
  const auto x = array({2, 3, 2}, {1, 10, 3, 30, 8, 5, 2, 2, not_a_number, 4, 6, 6}), lengths = array({2}, {2, 1});
  check_close(ref::pool(x, &lengths, reduction::mean), array({2, 2}, {2, 20, 2, 2}));
  check_close(ref::pool(x, &lengths, reduction::max), array({2, 2}, {3, 30, 2, 2}));
  check_close(ref::pool<double>(x, nullptr, reduction::first), array({2, 2}, {1, 10, 2, 2}));
  BOOST_TEST(std::isnan(ref::pool<double>(x, nullptr, reduction::max).data[2]));
  const auto none = array({2}, {0, -3});
  check_close(ref::pool(x, &none, reduction::mean), array({2, 2}, {0, 0, 0, 0}));
  check_close(ref::pool(x, &none, reduction::max), array({2, 2}, {0, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(dropout_scales_what_it_keeps) {
  const auto x = array({2, 2}, {1, 2, 3, not_a_number}), keep = array({2, 2}, {1, 0, 1, 0});
  check_close(ref::dropout(x, keep, 0.75), array({2, 2}, {4, 0, 12, 0}));
  check_close(ref::dropout(x, keep, 1), array({2, 2}, {0, 0, 0, 0}));
  check_close(ref::dropout(x, array({2}, {1, 0}), 0.5), array({2, 2}, {2, 0, 6, 0}));
}

BOOST_AUTO_TEST_CASE(norms) {
  // mean 2.5, variance 1.25
  const double d = std::sqrt(1.25 + 0.5);
  const auto x = array({1, 4}, {1, 2, 3, 4});
  check_close(ref::layer_norm<double>(x, nullptr, nullptr, 0.5), array({1, 4}, {-1.5 / d, -0.5 / d, 0.5 / d, 1.5 / d}));
  const auto gamma = array({4}, {1, 2, 3, 4}), beta = array({4}, {10, 20, 30, 40});
  check_close(ref::layer_norm(x, &gamma, &beta, 0.5),
              array({1, 4}, {-1.5 / d + 10, -1 / d + 20, 1.5 / d + 30, 6 / d + 40}));
  const double r = std::sqrt(7.5 + 0.5);
  check_close(ref::rms_norm(x, &gamma, 0.5), array({1, 4}, {1 / r, 4 / r, 9 / r, 16 / r}));
  const auto one = array({1}, {3}), shift = array({1}, {0.75});
  check_close(ref::layer_norm(array({2, 1}, {5, -2000}), &one, &shift, 1e-5), array({2, 1}, {0.75, 0.75}));
  // E[x²] − E[x]² has no correct digit here.
  const Array<float> far{{1, 4}, {1000.0f, 1000.25f, 1000.5f, 1000.75f}};
  check_close(to_double(ref::layer_norm<float>(far, nullptr, nullptr, 0)),
              ref::layer_norm<double>(array({1, 4}, {0, 1, 2, 3}), nullptr, nullptr, 0), 1e-5);
}

BOOST_AUTO_TEST_CASE(linear_applies_the_function_before_the_residual) {
  const auto x = array({2, 1, 2}, {1, 2, 3, 4}), w = array({3, 2}, {1, 0, 0, 1, -1, -1});
  const auto bias = array({3}, {10, 20, 0}), residual = array({2, 1, 3}, {1, 1, 1, 2, 2, 2});
  check_close(ref::linear(x, w), array({2, 1, 3}, {1, 2, -3, 3, 4, -7}));
  check_close(ref::linear(x, w, &bias, &residual, activation::relu), array({2, 1, 3}, {12, 23, 1, 15, 26, 2}));
}

BOOST_AUTO_TEST_CASE(matmul_broadcasts_batches) {
  const auto a = array({2, 1, 1, 2}, {1, 2, 3, 4}), b = array({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  check_close(ref::matmul(a, b), array({2, 3, 1, 1}, {1, 2, 3, 3, 4, 7}));
  check_close(ref::matmul(array({2, 2}, {1, 2, 3, 4}), array({2, 2}, {5, 6, 7, 8})), array({2, 2}, {19, 22, 43, 50}));
  check_close(ref::matmul(array({2, 0}, {}), array({0, 1}, {})), array({2, 1}, {0, 0}));
}

BOOST_AUTO_TEST_CASE(data_moves_where_it_should) {
  const auto x = array({2, 3}, {1, 2, 3, 4, 5, 6});
  check_close(ref::transpose(x, {1, 0}), array({3, 2}, {1, 4, 2, 5, 3, 6}));
  const auto cube = array({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  check_close(ref::transpose(cube, {2, 0, 1}), array({3, 2, 1}, {1, 4, 2, 5, 3, 6}));
  const auto heads = array({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});  // two tokens of width 4
  const auto split = array({1, 2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8});
  check_close(ref::split_heads(heads, 2), split);
  check_close(ref::merge_heads(split), heads);
  const auto left = array({2, 1}, {1, 2}), right = array({2, 2}, {3, 4, 5, 6});
  check_close(ref::concatenate<double>({&left, &right}, 1), array({2, 3}, {1, 3, 4, 2, 5, 6}));
  check_close(ref::slice(x, 1, 1, 2), array({2, 2}, {2, 3, 5, 6}));
  check_close(ref::slice(x, 0, 1, 0), array({0, 3}, {}));
  auto state = array({1, 3, 2}, {0, 0, 0, 0, 9, 9});
  check_close(ref::append(state, array({1, 1, 2}, {7, 8}), 1, 1), array({1, 2, 2}, {0, 0, 7, 8}));
  check_close(state, array({1, 3, 2}, {0, 0, 7, 8, 9, 9}));
}

BOOST_AUTO_TEST_CASE(embedding_and_positions) {
  const auto table = array({3, 2}, {1, 2, 3, 4, 5, 6});
  check_close(ref::embedding(table, array({2, 2}, {2, 0, 1, 1})), array({2, 2, 2}, {5, 6, 1, 2, 3, 4, 3, 4}));
  BOOST_CHECK_THROW(ref::embedding(table, array({1}, {3})), std::out_of_range);
  BOOST_CHECK_THROW(ref::embedding(table, array({1}, {-1})), std::out_of_range);
  check_close(ref::positions(table, 1, 2), array({2, 2}, {3, 4, 5, 6}));
  BOOST_CHECK_THROW(ref::positions(table, 2, 2), std::out_of_range);
  const double third = std::pow(10000.0, -2.0 / 3.0);
  check_close(ref::sinusoidal_positions<double>(5, 1, 3, 10000),
              array({1, 3}, {std::sin(5), std::cos(5), std::sin(5 * third)}));
}

BOOST_AUTO_TEST_CASE(masks_choose_and_never_multiply) {
  const auto tensor = array({2, 3}, {1, 1, 0, 1, 1, 1});
  const ref::Position causal = [](auto, auto, auto q, auto k) { return k <= q + 1; };
  const auto both = ref::mask({1, 1, 2, 3}, causal, &tensor);
  check_close(both, array({1, 1, 2, 3}, {1, 1, 0, 1, 1, 1}));
  check_close(ref::mask_to_bias(both), array({1, 1, 2, 3}, {0, 0, -infinity, 0, 0, 0}));
  check_close(ref::select(both, array({1, 1, 2, 3}, {1, 2, not_a_number, 4, 5, 6}), -1),
              array({1, 1, 2, 3}, {1, 2, -1, 4, 5, 6}));
  const ref::Position by_head = [](auto b, auto h, auto, auto) { return (b + h) % 2 == 0; };
  check_close(ref::mask<double>({2, 2, 1, 1}, by_head, nullptr), array({2, 2, 1, 1}, {1, 0, 0, 1}));
}

BOOST_AUTO_TEST_SUITE_END()

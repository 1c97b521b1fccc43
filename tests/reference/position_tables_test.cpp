// ALiBi's slopes, T5's buckets and ids of positions.

#include <treadle/ops/position_tables.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <stdexcept>

using namespace treadle;

BOOST_AUTO_TEST_SUITE(position_tables)

BOOST_AUTO_TEST_CASE(slopes) {
  BOOST_TEST(alibi_slopes(1) == (std::vector<double>{0x1p-8}), boost::test_tools::per_element());
  BOOST_TEST(alibi_slopes(6) == (std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125}),
             boost::test_tools::per_element());
  BOOST_CHECK_THROW(alibi_slopes(0), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(buckets) {
  // Exact up to 7, then doubling distances two buckets apart, up to the last.
  const std::int64_t distances[] = {0, 1, 7, 8, 16, 32, 64, 127, 128, 100000};
  const std::int64_t both[] = {0, 1, 7, 8, 10, 12, 14, 15, 15, 15};
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(relative_bucket(-distances[i]) == both[i]);
    BOOST_TEST(relative_bucket(distances[i]) == both[i] + (distances[i] > 0 ? 16 : 0));
    BOOST_TEST(relative_bucket(distances[i], {.bidirectional = false}) == 0);
  }
  BOOST_TEST(relative_bucket(-15, {.bidirectional = false}) == 15);
  BOOST_TEST(relative_bucket(-32, {.bidirectional = false}) == 21);
  BOOST_TEST(relative_bucket(-128, {.bidirectional = false}) == 31);
  for (std::int64_t d = 1; d < 1000; ++d) BOOST_TEST(relative_bucket(-d) >= relative_bucket(1 - d));
  BOOST_CHECK_THROW(relative_bucket(1, {.num_buckets = 3}), std::invalid_argument);
  BOOST_CHECK_THROW(relative_bucket(1, {.max_distance = 8}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(frequencies) {
  const auto near = [](const RotaryFrequencies& f, std::size_t i, double want) {
    BOOST_TEST(std::abs(f.values[i] / want - 1) < 1e-11, i << ": " << f.values[i] << " is not " << want);
  };
  const RotaryFrequencies plain = rotary_frequencies({.rotary_dim = 64});
  BOOST_TEST(plain.values.size() == 32u);
  BOOST_TEST(plain.magnitude == 1.0);
  for (std::size_t i = 0; i < 32; ++i) near(plain, i, std::pow(10000.0, -static_cast<double>(i) / 32));

  const RotaryFrequencies linear = rotary_frequencies({.rotary_dim = 64, .scaling = rope_scaling::linear, .factor = 4});
  for (std::size_t i = 0; i < 32; ++i) near(linear, i, plain.values[i] / 4);

  // The first pair stays, the last one is interpolated as if linearly.
  const RotaryFrequencies ntk = rotary_frequencies({.rotary_dim = 64, .scaling = rope_scaling::ntk, .factor = 4});
  near(ntk, 0, 1);
  near(ntk, 1, 0.717098328105);
  near(ntk, 31, plain.values[31] / 4);
  BOOST_TEST(rotary_frequencies({.rotary_dim = 2, .scaling = rope_scaling::ntk, .factor = 4}).values[0] == 1.0);

  RotaryAngles dynamic{.rotary_dim = 64, .scaling = rope_scaling::dynamic_ntk, .factor = 2, .original_length = 4096};
  for (const std::int64_t length : {0, 1, 4096}) {
    dynamic.length = length;
    BOOST_TEST(rotary_frequencies(dynamic).values == plain.values, boost::test_tools::per_element());
  }
  dynamic.length = 8192;  // a factor of 2 · 2 − 1
  near(rotary_frequencies(dynamic), 1, 0.723784022394);
  near(rotary_frequencies(dynamic), 31, 4.44507144054e-05);

  // Pairs up to 8 turn 32 times in 2048 positions and stay; from 21 on less than once.
  RotaryAngles yarn{
      .rotary_dim = 64, .scaling = rope_scaling::yarn, .factor = 4, .original_length = 2048, .low = 1, .high = 32};
  const RotaryFrequencies parts = rotary_frequencies(yarn);
  near(parts, 8, plain.values[8]);
  near(parts, 10, 0.0497455787668);
  near(parts, 16, 0.00538461538462);
  near(parts, 20, 0.000973008510821);
  for (std::size_t i = 21; i < 32; ++i) near(parts, i, plain.values[i] / 4);
  BOOST_TEST(std::abs(parts.magnitude - 1.138629436111989) < 1e-14);
  yarn.magnitude = 1.5;
  BOOST_TEST(rotary_frequencies(yarn).magnitude == 1.5);

  const RotaryAngles llama{.base = 500000,
                           .rotary_dim = 128,
                           .scaling = rope_scaling::llama3,
                           .factor = 8,
                           .original_length = 8192,
                           .low = 1,
                           .high = 4};
  const RotaryFrequencies smooth = rotary_frequencies(llama);
  near(smooth, 28, 0.00321144599475);
  near(smooth, 30, 0.00137189356776);
  near(smooth, 33, 0.000312693750384);
  near(smooth, 40, 3.42810219595e-05);
  near(smooth, 63, 3.06892598891e-07);
  BOOST_TEST(smooth.magnitude == 1.0);
}

BOOST_AUTO_TEST_CASE(permutations_between_the_layouts) {
  using rows = std::vector<std::int64_t>;
  const auto half = rope_layout::half, pairs = rope_layout::interleaved;
  BOOST_TEST(rope_permutation(2, 6, 4, half, pairs) == (rows{0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11}),
             boost::test_tools::per_element());
  BOOST_TEST(rope_permutation(1, 6, 6, half, pairs) == (rows{0, 3, 1, 4, 2, 5}), boost::test_tools::per_element());
  BOOST_TEST(rope_permutation(1, 6, 6, pairs, half) == (rows{0, 2, 4, 1, 3, 5}), boost::test_tools::per_element());
  BOOST_TEST(rope_permutation(2, 5, 4, half, half) == (rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
             boost::test_tools::per_element());
  BOOST_CHECK_THROW(rope_permutation(1, 6, 5, half, pairs), std::invalid_argument);
  BOOST_CHECK_THROW(rope_permutation(1, 6, 8, half, pairs), std::invalid_argument);
  const std::vector<float> weight{1, 2, 3, 4, 5, 6};
  BOOST_TEST(permuted_rows(weight, rows{2, 0, 1}) == (std::vector<float>{5, 6, 1, 2, 3, 4}),
             boost::test_tools::per_element());
  BOOST_CHECK_THROW(permuted_rows(weight, rows{0, 1, 2, 3}), std::invalid_argument);
  BOOST_CHECK_THROW(permuted_rows(weight, rows{0, 3, 1}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(ids_among_padding) {
  const std::vector<std::uint8_t> keep{0, 1, 1, 1, 0, 1};
  BOOST_TEST(position_ids(keep, 3) == (std::vector<std::int32_t>{0, 0, 1, 0, 0, 1}), boost::test_tools::per_element());
  const std::vector<std::int64_t> ids{5, 1, 9, 1, 1, 4};
  BOOST_TEST(position_ids_after_padding(ids, 3, 1) == (std::vector<std::int32_t>{2, 1, 3, 1, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(position_ids({}, 0).empty());
  BOOST_CHECK_THROW(position_ids(keep, 4), std::invalid_argument);
  BOOST_CHECK_THROW(position_ids_after_padding(ids, 0, 1), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()

// ALiBi's slopes, T5's buckets and ids of positions.

#include <treadle/ops/position_tables.hpp>

#include <boost/test/unit_test.hpp>

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

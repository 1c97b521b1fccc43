// Dense attention of chosen rows in double.

#include "arrays.hpp"

#include <treadle/backends/reference/rows.hpp>

#include <limits>
#include <set>
#include <tuple>

using namespace treadle;
using namespace treadle::test;
namespace ref = treadle::reference;

namespace {

std::vector<float> normal(std::size_t n, std::uint64_t seed) {
  std::vector<float> data(n);
  fill_normal(data, seed);
  return data;
}

TensorView view(std::vector<float>& data, const Shape& shape) { return dense_view(data.data(), DType::f32, shape); }

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_rows)

BOOST_AUTO_TEST_CASE(rows_are_rows_of_the_whole) {
  auto q = normal(2 * 4 * 9 * 5, 1), k = normal(2 * 2 * 12 * 5, 2), v = normal(2 * 2 * 12 * 3, 3);
  const TensorView vq = view(q, {2, 4, 9, 5}), vk = view(k, {2, 2, 12, 5}), vv = view(v, {2, 2, 12, 3});
  const ref::Keep keep = [](auto b, auto h, auto i, auto j) { return j <= i + b && (h != 1 || j > 2); };
  const auto rows = ref::sample_rows(vq, 100, 0);
  BOOST_TEST(rows.size() == 2u * 4 * 9);
  const auto got = ref::attention_rows(vq, vk, vv, keep, 0.4, rows);

  const auto mask = ref::mask<double>({2, 4, 9, 12}, keep, nullptr);
  const auto dq = ref::from_view<double>(vq), dk = ref::from_view<double>(vk), dv = ref::from_view<double>(vv);
  const auto want = ref::attention<double>({.q = dq, .k = dk, .v = dv, .mask = &mask, .scale = 0.4});
  check_close({{2, 4, 9, 3}, got.out}, want.out);
  check_close({{2, 4, 9}, got.lse}, want.lse);
  BOOST_TEST(got.lse[9] == -std::numeric_limits<double>::infinity());  // batch 0, head 1, query 0: no key
  BOOST_TEST(got.entropy[9] == 0.0);
}

BOOST_AUTO_TEST_CASE(entropy_is_in_nats) {
  std::vector<float> q(4, 0.0f), k(4 * 8, 0.0f);
  auto v = normal(8 * 2, 4);
  const std::vector<ref::Row> rows{{0, 0, 0}};
  const auto uniform_row =
      ref::attention_rows(view(q, {1, 1, 1, 4}), view(k, {1, 1, 8, 4}), view(v, {1, 1, 8, 2}), {}, 1, rows);
  BOOST_TEST(std::abs(uniform_row.entropy[0] - std::log(8.0)) < 1e-12);
  const ref::Keep one = [](auto, auto, auto, auto j) { return j == 5; };
  const auto single =
      ref::attention_rows(view(q, {1, 1, 1, 4}), view(k, {1, 1, 8, 4}), view(v, {1, 1, 8, 2}), one, 1, rows);
  BOOST_TEST(std::abs(single.entropy[0]) < 1e-12);
  BOOST_TEST(single.out[1] == static_cast<double>(v[11]));
}

BOOST_AUTO_TEST_CASE(strided_views_are_read_as_they_are) {
  auto packed = normal(2 * 7 * 3 * 6, 5);  // [batch, length, (q k v), heads·dim] with 2 heads of 3
  const auto part = [&](std::size_t which) {
    TensorView t = view(packed, {2, 2, 7, 3});
    t.data = packed.data() + which * 6;
    t.strides = {7 * 18, 3, 18, 1};
    return t;
  };
  const std::vector<ref::Row> rows{{1, 0, 6}, {0, 1, 2}};
  const auto got = ref::attention_rows(part(0), part(1), part(2), {}, 0.5, rows);
  const auto q = ref::from_view<double>(part(0)), k = ref::from_view<double>(part(1)),
             v = ref::from_view<double>(part(2));
  const auto whole = ref::attention<double>({.q = q, .k = k, .v = v, .scale = 0.5}).out;
  for (std::size_t d = 0; d < 3; ++d) {
    BOOST_TEST(std::abs(got.out[d] - whole.data[((2 + 0) * 7 + 6) * 3 + d]) < 1e-12);
    BOOST_TEST(std::abs(got.out[3 + d] - whole.data[((0 + 1) * 7 + 2) * 3 + d]) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(samples_are_distinct_ordered_and_seeded) {
  auto q = normal(2 * 3 * 50, 6);
  const TensorView vq = view(q, {2, 3, 50, 1});
  const auto rows = ref::sample_rows(vq, 8, 11);
  BOOST_TEST(rows.size() == 2u * 3 * 8);
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  bool ordered = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    seen.insert({rows[i].batch, rows[i].head, rows[i].query});
    if (i % 8 != 0) ordered = ordered && rows[i - 1].query < rows[i].query;
  }
  BOOST_TEST(seen.size() == rows.size());
  BOOST_TEST(ordered);
  const auto again = ref::sample_rows(vq, 8, 11), other = ref::sample_rows(vq, 8, 12);
  bool same = true, differs = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    same = same && rows[i].query == again[i].query;
    differs = differs || rows[i].query != other[i].query;
  }
  BOOST_TEST(same);
  BOOST_TEST(differs);
}

BOOST_AUTO_TEST_CASE(wrong_shapes_are_refused) {
  auto q = normal(6, 7), k = normal(8, 8);
  const auto refused = [&](const TensorView& a, const TensorView& b, std::vector<ref::Row> rows) {
    return error_of([&] { ref::attention_rows(a, b, b, {}, 1, rows); });
  };
  BOOST_TEST(contains(refused(view(q, {1, 3, 1, 2}), view(k, {1, 2, 2, 2}), {}), "H a multiple of Hkv"));
  BOOST_TEST(contains(refused(view(q, {1, 1, 3, 2}), view(k, {1, 1, 4, 2}), {{0, 0, 3}}), "outside"));
  BOOST_TEST(contains(refused(view(q, {3, 2}), view(k, {1, 1, 4, 2}), {}), "[batch, heads, length, dim]"));
}

BOOST_AUTO_TEST_SUITE_END()

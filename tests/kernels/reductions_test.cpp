// Log-softmax, log-sum-exp, argmax and cross-entropy of every ISA against plain loops in float64.

#include "support.hpp"

using namespace kernel_test;

namespace {

const std::vector<Index> widths = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 257, 1000};

/// Runs in one piece and item by item: the same bits, and nothing written outside.
template <class Arguments>
void check(kernel::Kernel<Arguments> Table::* which, const Arguments& a, Tensor& out,
           const std::vector<double>& expected, double tolerance) {
  for (const Table* t : tables()) {
    BOOST_TEST_CONTEXT(t->isa << " width " << expected.size()) {
      out.fill(quiet_nan);
      run(t->*which, a);
      BOOST_TEST(distance(out.values(), expected) <= tolerance);
      BOOST_TEST(out.intact());
      const auto whole = out.values();
      out.fill(quiet_nan);
      run(t->*which, a, 1);
      BOOST_TEST(same_bits(whole, out.values()));
    }
  }
}

double exact_lse(Tensor& x, Index row, Index n) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (Index i = 0; i < n; ++i) top = std::max(top, static_cast<double>(x.at({row, i})));
  if (std::isinf(top)) return top;
  for (Index i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x.at({row, i})) - top);
  return top + std::log(sum);
}

/// Every second number of a tensor [rows, 1]: a result with a stride.
TensorView every_second(Tensor& t) {
  TensorView v = t.view;
  v.rank = 1;
  return v;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reductions)

BOOST_AUTO_TEST_CASE(logsumexp_and_log_softmax) {
  for (float offset : {0.0f, 1000.0f})
    for (Index n : widths) {
      Tensor x({11, n}, 2), lse({11, 1}, 1), out({11, n}, 1);
      x.normal(1, 4.0f).each([&](float& v) { v += offset; });
      for (Index i = 0; i < n; ++i) x.at({3, i}) = -infinity;  // a row without anything
      for (Index i = 0; i + 1 < n; ++i) x.at({4, i}) = -infinity;
      std::vector<double> sums, logs;
      for (Index r = 0; r < 11; ++r) {
        sums.push_back(exact_lse(x, r, n));
        for (Index i = 0; i < n; ++i)
          logs.push_back(std::isinf(sums.back()) ? -INFINITY : static_cast<double>(x.at({r, i})) - sums.back());
      }
      check(&Table::logsumexp, {x.view, every_second(lse)}, lse, sums, 1e-6 + 1e-7 * static_cast<double>(offset));
      check(&Table::log_softmax, {x.view, out.view}, out, logs, 4e-6);  // the offset costs no digits
    }
}

BOOST_AUTO_TEST_CASE(infinities_and_nan_in_a_row) {
  for (Index n : {2, 5, 16, 40}) {
    Tensor x({3, n}), lse({3, 1});
    x.normal(2);
    x.at({0, n - 1}) = infinity;
    x.at({1, 0}) = quiet_nan;
    x.at({2, n / 2}) = infinity;
    x.at({2, n - 1}) = quiet_nan;
    for (const Table* t : tables()) {
      run(t->logsumexp, {x.view, every_second(lse)});
      BOOST_TEST(lse.at({0, 0}) == infinity);
      BOOST_TEST(std::isnan(lse.at({1, 0})));
      BOOST_TEST(std::isnan(lse.at({2, 0})));
    }
  }
}

BOOST_AUTO_TEST_CASE(argmax_takes_the_first) {
  for (Index n : widths) {
    if (n == 0) continue;
    Tensor x({10, n}, 3);
    x.normal(3).each([](float& v) { v = std::round(v * 2); });  // many equal ones
    for (Index i = 0; i < n; ++i) x.at({6, i}) = -infinity;
    for (Index i = n / 2; i < n; i += 3) x.at({7, i}) = quiet_nan;  // the first NaN wins
    x.at({8, n - 1}) = infinity;
    for (Index i = 0; i < n; ++i) x.at({9, i}) = quiet_nan;
    std::vector<std::int64_t> expected;
    for (Index r = 0; r < 10; ++r) {
      Index best = 0;
      for (Index i = 1; i < n; ++i) {
        const float a = x.at({r, best}), b = x.at({r, i});
        if (!std::isnan(a) && (std::isnan(b) || b > a)) best = i;
      }
      expected.push_back(best);
    }
    for (const Table* t : tables()) {
      std::vector<std::int64_t> got(30, -7);
      TensorView out = dense_view(got.data(), i64, std::vector<Index>{10});
      out.strides[0] = 3;
      run(t->argmax, {x.view, out}, 1);
      for (std::size_t r = 0; r < 10; ++r) {
        BOOST_TEST(got[3 * r] == expected[r], t->isa << ", width " << n << ", row " << r);
        BOOST_TEST(got[3 * r + 1] == -7);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cross_entropy_of_each_row) {
  for (Index n : widths) {
    if (n == 0) continue;
    Tensor x({9, n}, 1), out({9, 1}, 1);
    x.normal(4, 3.0f).each([](float& v) { v += 500.0f; });
    std::vector<std::int64_t> ids(9);
    std::vector<double> expected;
    for (Index r = 0; r < 9; ++r) {
      ids[static_cast<std::size_t>(r)] = r == 4 ? -100 : r * 7 % n;
      expected.push_back(
          r == 4 ? 0 : exact_lse(x, r, n) - static_cast<double>(x.at({r, ids[static_cast<std::size_t>(r)]})));
    }
    std::int32_t bad = 0;
    const Index shape[] = {9};
    const TensorView given = dense_view(ids.data(), i64, shape);
    check(&Table::cross_entropy, {x.view, given, every_second(out), -100, &bad}, out, expected, 4e-6);
    BOOST_TEST(bad == 0);
    ids[2] = n;
    for (const Table* t : tables()) {
      bad = 0;
      run(t->cross_entropy, {x.view, given, every_second(out), -100, &bad});
      BOOST_TEST(bad == 1);
      BOOST_TEST(out.at({2, 0}) == 0.0f);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

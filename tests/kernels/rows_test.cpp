// Norms, softmax, elementwise, combine, copy and embedding of every ISA against plain loops in float64.

#include "support.hpp"

#include <treadle/graph/scalar/parse.hpp>
#include <treadle/graph/scalar/program.hpp>

#include <string>

using namespace kernel_test;

namespace {

const std::vector<Index> widths = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 100, 257};

template <class Arguments>
void check(kernel::Kernel<Arguments> Table::* which, const Arguments& a, Tensor& out,
           const std::vector<double>& expected, double tolerance) {
  for (const Table* t : tables()) {
    BOOST_TEST_CONTEXT(t->isa << " width " << out.view.shape[static_cast<std::size_t>(out.view.rank - 1)]) {
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

}  // namespace

BOOST_AUTO_TEST_SUITE(rows)

BOOST_AUTO_TEST_CASE(layer_norm) {
  for (float offset : {0.0f, 10000.0f})
    for (Index n : widths) {
      Tensor x({11, n}, 2), gamma({n}), beta({n}), out({11, n}, 1);
      x.normal(1).each([&](float& v) { v += offset; });
      gamma.normal(2);
      beta.normal(3);
      std::vector<double> expected;
      for (Index r = 0; r < 11; ++r) {
        double mean = 0, var = 0;
        for (Index i = 0; i < n; ++i) mean += static_cast<double>(x.at({r, i})) / static_cast<double>(n);
        for (Index i = 0; i < n; ++i)
          var += std::pow(static_cast<double>(x.at({r, i})) - mean, 2) / static_cast<double>(n);
        for (Index i = 0; i < n; ++i)
          expected.push_back((static_cast<double>(x.at({r, i})) - mean) / std::sqrt(var + 1e-5) *
                                 static_cast<double>(gamma.at({i})) +
                             static_cast<double>(beta.at({i})));
      }
      check(&Table::layer_norm, {x.view, gamma.view, beta.view, out.view, 1e-5f}, out, expected, 1e-5);
    }
}
BOOST_AUTO_TEST_CASE(rms_norm) {
  for (Index n : widths) {
    Tensor x({9, n}, 2), gamma({n}), out({9, n}, 1);
    x.normal(1);
    gamma.normal(2);
    std::vector<double> expected;
    for (Index r = 0; r < 9; ++r) {
      double square = 0;
      for (Index i = 0; i < n; ++i) square += std::pow(static_cast<double>(x.at({r, i})), 2) / static_cast<double>(n);
      for (Index i = 0; i < n; ++i)
        expected.push_back(static_cast<double>(x.at({r, i})) / std::sqrt(square + 1e-6) *
                           static_cast<double>(gamma.at({i})));
    }
    check(&Table::rms_norm, {x.view, gamma.view, out.view, 1e-6f}, out, expected, 2e-6);
  }
}
BOOST_AUTO_TEST_CASE(softmax) {
  for (bool masked : {false, true})
    for (Index n : widths) {
      Tensor x({10, n}, 2), out({10, n}, 1);
      x.normal(1, 5.0f);
      const auto keep = std::make_unique<bool[]>(static_cast<std::size_t>(10 * n) + 1);
      for (Index i = 0; i < 10 * n; ++i)
        keep[static_cast<std::size_t>(i)] = i / std::max<Index>(n, 1) != 4 && i % 3 != 1;
      std::vector<double> expected;
      for (Index r = 0; r < 10; ++r) {
        const auto seen = [&](Index i) { return !masked || keep[static_cast<std::size_t>(r * n + i)]; };
        double sum = 0;
        for (Index i = 0; i < n; ++i) sum += seen(i) ? std::exp(static_cast<double>(x.at({r, i}))) : 0;
        for (Index i = 0; i < n; ++i) {
          expected.push_back(seen(i) ? std::exp(static_cast<double>(x.at({r, i}))) / sum : 0);
          if (!seen(i)) x.at({r, i}) = quiet_nan;
        }
      }
      const Index shape[] = {10, n};
      check(&Table::softmax, {x.view, masked ? dense_view(keep.get(), boolean, shape) : TensorView{}, out.view}, out,
            expected, 1e-6);
    }
}
BOOST_AUTO_TEST_CASE(elementwise) {
  using U = kernel::Unary;
  const auto exact = [](U op, double x) {
    switch (op) {
      case U::relu: return std::max(x, 0.0);
      case U::gelu: return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
      case U::gelu_tanh:
        return x * 0.5 * (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * x * x * x)));
      case U::silu: return x / (1 + std::exp(-x));
      case U::exp: return std::exp(x);
      case U::tanh: return std::tanh(x);
      case U::erf: return std::erf(x);
      case U::elu_plus_one: return x > 0 ? x + 1 : std::exp(x);
      case U::sigmoid: return 1 / (1 + std::exp(-x));
      case U::log: return std::log(x);
      case U::softplus: return std::log1p(std::exp(x));
      case U::elu: return x > 0 ? x : 2.5 * std::expm1(x);
      case U::squared_relu: return x > 0 ? x * x : 0;
      case U::quick_gelu: return x / (1 + std::exp(-1.702 * x));
      case U::softcap: return 2.5 * std::tanh(x / 2.5);
      case U::scale: return x * 2.5;
      default: return x;
    }
  };
  for (int op = 0; op <= static_cast<int>(U::scale); ++op)
    for (Index n : {Index{0}, Index{1}, Index{17}, Index{64}, Index{5000}}) {
      Tensor x({3, n}, 2), out({3, n}, 1);
      x.normal(1, 2.0f);
      std::vector<double> expected;
      x.each([&](float& v) { expected.push_back(exact(static_cast<U>(op), static_cast<double>(v))); });
      double largest = 1;
      for (double e : expected) largest = std::isfinite(e) ? std::max(largest, std::fabs(e)) : largest;
      check(&Table::elementwise, {x.view, out.view, static_cast<U>(op), 2.5f}, out, expected, 3e-7 * largest);
    }
}
BOOST_AUTO_TEST_CASE(combine_broadcasts) {
  for (auto op : {kernel::Binary::add, kernel::Binary::multiply})
    for (Index n : widths) {
      Tensor a({2, 3, 4, n}, 1), row({n}), column({2, 1, 4, 1}), out({2, 3, 4, n}, 2);
      a.normal(1);
      row.normal(2);
      column.normal(3);
      TensorView r = a.view, c = a.view;
      r.data = row.view.data;
      r.strides = {0, 0, 0, 1};
      c.data = column.view.data;
      c.strides = {4, 0, 1, 0};
      std::vector<double> with_row, with_column;
      for (Index i = 0; i < 2; ++i)
        for (Index j = 0; j < 3; ++j)
          for (Index k = 0; k < 4; ++k)
            for (Index l = 0; l < n; ++l) {
              const float x = a.at({i, j, k, l}), y = row.at({l}), z = column.at({i, 0, k, 0});
              const bool add = op == kernel::Binary::add;
              with_row.push_back(static_cast<double>(add ? x + y : x * y));
              with_column.push_back(static_cast<double>(add ? z + x : z * x));
            }
      check(&Table::combine, {a.view, r, out.view, op}, out, with_row, 0);
      check(&Table::combine, {c, a.view, out.view, op}, out, with_column, 0);
    }
}
BOOST_AUTO_TEST_CASE(copy) {
  for (Index n : {0, 1, 5, 70}) {
    Tensor x({3, 2, n}, 1), out({2, n, 3}, 2);
    x.normal(1);
    kernel::Copy a{x.view, out.view};
    a.from.shape = {2, n, 3};
    a.from.strides = {x.view.strides[1], x.view.strides[2], x.view.strides[0]};
    std::vector<double> expected;
    for (Index i = 0; i < 2; ++i)
      for (Index j = 0; j < n; ++j)
        for (Index k = 0; k < 3; ++k) expected.push_back(static_cast<double>(x.at({k, i, j})));
    check(&Table::copy, a, out, expected, 0);
  }
  std::vector<std::int64_t> from(200), to(200, -1);
  for (std::size_t i = 0; i < 200; ++i) from[i] = static_cast<std::int64_t>(i);
  const Index shape[] = {200};
  for (const Table* t : tables()) {
    run(t->copy, {dense_view(from.data(), i64, shape), dense_view(to.data(), i64, shape)});
    BOOST_TEST(from == to, boost::test_tools::per_element());
  }
}
BOOST_AUTO_TEST_CASE(embedding) {
  for (Index n : {0, 1, 20}) {
    Tensor table({7, n}, 3), out({40, n}, 1);
    table.normal(1);
    std::vector<std::int32_t> ids(40);
    for (std::size_t i = 0; i < 40; ++i) ids[i] = static_cast<std::int32_t>(i % 9) - 1;
    std::vector<double> expected;
    for (std::int32_t id : ids)
      for (Index i = 0; i < n; ++i) expected.push_back(id < 0 || id > 6 ? 0.0 : static_cast<double>(table.at({id, i})));
    std::int32_t bad = 0;
    const Index shape[] = {40};
    check(&Table::embedding, {dense_view(ids.data(), i32, shape), table.view, out.view, &bad}, out, expected, 0);
    BOOST_TEST(bad == 1);
  }
}
BOOST_AUTO_TEST_CASE(math_errors_in_ulps) {
  using U = kernel::Unary;
  struct Row {
    U op;
    double (*exact)(double);
    float from, to;
    double ulps;
  };
  const Row rows[] = {{U::exp, [](double x) { return std::exp(x); }, -104.0f, 89.0f, 1.5},
                      {U::tanh, [](double x) { return std::tanh(x); }, -12.0f, 12.0f, 2.5},
                      {U::erf, [](double x) { return std::erf(x); }, -5.0f, 5.0f, 2.5},
                      {U::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80.0f, 80.0f, 3.5},
                      {U::log, [](double x) { return std::log(x); }, 0.25f, 4.0f, 1.0},
                      {U::log, [](double x) { return std::log(x); }, 1e-3f, 1000.0f, 1.0},
                      {U::log, [](double x) { return std::log(x); }, 1e-38f, 3e38f, 1.0},
                      {U::log, [](double x) { return std::log(x); }, 1e-45f, 1e-37f, 1.0},
                      {U::softplus, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); },
                       -100.0f, 100.0f, 2.5},
                      {U::elu, [](double x) { return x > 0 ? x : std::expm1(x); }, -20.0f, 2.0f, 1.5},
                      {U::elu, [](double x) { return x > 0 ? x : std::expm1(x); }, -0.01f, 0.01f, 1.5}};
  for (const Row& row : rows) {
    constexpr Index n = 200000;
    Tensor x({1, n}), out({1, n});
    for (Index i = 0; i < n; ++i)
      x.at({0, i}) = row.from + (row.to - row.from) * static_cast<float>(i) / static_cast<float>(n);
    for (const Table* t : tables()) {
      run(t->elementwise, {x.view, out.view, row.op, 1.0f});
      double worst = 0;
      for (Index i = 0; i < n; ++i) {
        const double e = row.exact(static_cast<double>(x.at({0, i}))), y = static_cast<double>(out.at({0, i}));
        const float f = static_cast<float>(std::fabs(e));
        const double ulp =
            std::isinf(f) ? 1 : static_cast<double>(std::nextafter(f, infinity)) - static_cast<double>(f);
        if (!(std::isinf(f) && std::isinf(y))) worst = std::max(worst, std::fabs(y - e) / ulp);
      }
      BOOST_TEST_MESSAGE(t->isa << " op " << static_cast<int>(row.op) << ": " << worst << " ulp");
      BOOST_TEST(worst <= row.ulps, t->isa << " op " << static_cast<int>(row.op) << ": " << worst << " ulp");
    }
  }
  Tensor x({1, 4}), out({1, 4});
  x.at({0, 0}) = infinity;
  x.at({0, 1}) = -infinity;
  x.at({0, 2}) = quiet_nan;
  x.at({0, 3}) = 0.0f;
  for (const Table* t : tables()) {
    run(t->elementwise, {x.view, out.view, U::exp, 1.0f});
    BOOST_TEST(
        (out.at({0, 0}) == infinity && out.at({0, 1}) == 0.0f && std::isnan(out.at({0, 2})) && out.at({0, 3}) == 1.0f));
    run(t->elementwise, {x.view, out.view, U::tanh, 1.0f});
    BOOST_TEST(
        (out.at({0, 0}) == 1.0f && out.at({0, 1}) == -1.0f && std::isnan(out.at({0, 2})) && out.at({0, 3}) == 0.0f));
    run(t->elementwise, {x.view, out.view, U::erf, 1.0f});
    BOOST_TEST(
        (out.at({0, 0}) == 1.0f && out.at({0, 1}) == -1.0f && std::isnan(out.at({0, 2})) && out.at({0, 3}) == 0.0f));
    run(t->elementwise, {x.view, out.view, U::log, 1.0f});
    BOOST_TEST((out.at({0, 0}) == infinity && std::isnan(out.at({0, 1})) && std::isnan(out.at({0, 2})) &&
                out.at({0, 3}) == -infinity));
    run(t->elementwise, {x.view, out.view, U::softplus, 1.0f});
    BOOST_TEST((out.at({0, 0}) == infinity && out.at({0, 1}) == 0.0f && std::isnan(out.at({0, 2}))));
    run(t->elementwise, {x.view, out.view, U::elu, 1.0f});
    BOOST_TEST((out.at({0, 0}) == infinity && out.at({0, 1}) == -1.0f && std::isnan(out.at({0, 2})) &&
                out.at({0, 3}) == 0.0f));
    run(t->elementwise, {x.view, out.view, U::squared_relu, 1.0f});
    BOOST_TEST((out.at({0, 0}) == infinity && out.at({0, 1}) == 0.0f && std::isnan(out.at({0, 2}))));
    run(t->elementwise, {x.view, out.view, U::softcap, 30.0f});
    BOOST_TEST((out.at({0, 0}) == 30.0f && out.at({0, 1}) == -30.0f && std::isnan(out.at({0, 2}))));
  }
}

BOOST_AUTO_TEST_CASE(division_by_a_constant_is_rounded_like_a_division) {
  constexpr Index n = 20000;
  for (const char* divisor : {"20.0", "3.0", "0.7", "-13.0", "1e20", "1e35"}) {
    scalar::Pool pool;
    const auto parsed = scalar::parse(pool, std::string("score / ") + divisor);
    const scalar::TileProgram program = scalar::compile(pool, parsed.root, {});
    const float by = std::stof(divisor);
    Tensor x({1, n}), out({1, n});
    x.normal(7).each([](float& v) { v *= 100; });
    x.at({0, 0}) = infinity;
    x.at({0, 1}) = -infinity;
    x.at({0, 2}) = 0.0f;
    for (const Table* t : tables()) {
      run(t->map, {x.view, out.view, &program});
      bool same = true;
      for (Index i = 0; i < n; ++i) same &= out.at({0, i}) == x.at({0, i}) / by;
      BOOST_TEST(same, t->isa << " / " << divisor);
    }
  }
}

BOOST_AUTO_TEST_CASE(tanh_stays_within_one) {
  constexpr Index n = 100000;
  Tensor x({1, n}), out({1, n});
  for (Index i = 0; i < n; ++i) x.at({0, i}) = 7.5f + 2e-5f * static_cast<float>(i);
  for (const Table* t : tables()) {
    run(t->elementwise, {x.view, out.view, kernel::Unary::tanh, 1.0f});
    float most = 0;
    for (Index i = 0; i < n; ++i) most = std::max(most, out.at({0, i}));
    BOOST_TEST(most == 1.0f, t->isa);
  }
}

BOOST_AUTO_TEST_SUITE_END()

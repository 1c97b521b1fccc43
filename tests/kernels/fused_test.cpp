// Kernels of fused nodes on every ISA: against plain loops in float64, and bit by bit against the kernels that they
// replace where those do the same arithmetic.

#include "support.hpp"

using namespace kernel_test;

namespace {

const std::vector<Index> widths = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100};

std::vector<double> normalised(const std::vector<double>& row, Tensor* gamma, Tensor* beta, bool layer, double eps) {
  const auto n = static_cast<double>(row.size());
  double mean = 0, square = 0;
  for (const double x : row) mean += layer ? x / n : 0;
  for (const double x : row) square += (x - mean) * (x - mean) / n;
  std::vector<double> out;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto at = static_cast<Index>(i);
    out.push_back((row[i] - mean) / std::sqrt(square + eps) * (gamma ? static_cast<double>(gamma->at({at})) : 1) +
                  (beta ? static_cast<double>(beta->at({at})) : 0));
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fused)

BOOST_AUTO_TEST_CASE(add_norm) {
  for (const bool layer : {true, false})
    for (const Index n : widths) {
      Tensor a({11, n}, 2), b({11, n}, 1), gamma({n}), beta({n}), sum({11, n}, 3), out({11, n}, 1), added({11, n}),
          apart({11, n});
      a.normal(1);
      b.normal(2);
      gamma.normal(3);
      beta.normal(4);
      std::vector<double> sums, rows;
      for (Index r = 0; r < 11; ++r) {
        std::vector<double> row;
        for (Index i = 0; i < n; ++i)
          row.push_back(static_cast<double>(a.at({r, i})) + static_cast<double>(b.at({r, i})));
        sums.insert(sums.end(), row.begin(), row.end());
        const auto y = normalised(row, &gamma, layer ? &beta : nullptr, layer, 1e-5);
        rows.insert(rows.end(), y.begin(), y.end());
      }
      for (const Table* t : tables()) BOOST_TEST_CONTEXT(t->isa << " width " << n << (layer ? " layer" : " rms")) {
          const auto& k = layer ? t->add_layer_norm : t->add_rms_norm;
          kernel::AddNorm args{a.view, b.view, gamma.view, layer ? beta.view : TensorView{}, sum.view, out.view, 1e-5f};
          sum.fill(quiet_nan);
          out.fill(quiet_nan);
          run(k, args);
          BOOST_TEST(distance(sum.values(), sums) <= 1e-6);
          BOOST_TEST(distance(out.values(), rows) <= 2e-5);
          BOOST_TEST(sum.intact());
          BOOST_TEST(out.intact());
          const auto whole = out.values();
          // Without the sum, piece by piece.
          args.sum = {};
          out.fill(quiet_nan);
          run(k, args, 1);
          BOOST_TEST(same_bits(whole, out.values()));
          // The sum over a, the rows over b, as the memory plan puts them.
          Tensor over_a({11, n}), over_b({11, n});
          over_a.normal(1);
          over_b.normal(2);
          run(k, {over_a.view, over_b.view, gamma.view, args.beta, over_a.view, over_b.view, 1e-5f});
          BOOST_TEST(same_bits(whole, over_b.values()));
          // The two kernels that it stands for.
          for (Index r = 0; r < 11; ++r)
            for (Index i = 0; i < n; ++i) added.at({r, i}) = a.at({r, i}) + b.at({r, i});
          if (layer)
            run(t->layer_norm, {added.view, gamma.view, beta.view, apart.view, 1e-5f});
          else
            run(t->rms_norm, {added.view, gamma.view, apart.view, 1e-5f});
          if (n > 0) BOOST_TEST(same_bits(whole, apart.values()));
        }
    }
}

BOOST_AUTO_TEST_CASE(embedding_sum) {
  const Index vocabulary = 7, rows = 12;
  std::vector<std::int32_t> ids32 = {0, 6, 3, 3, 1, 2, 5, 4, 0, 6, 2, 1};
  std::vector<std::int64_t> ids64(ids32.begin(), ids32.end());
  for (const auto norm : {kernel::Norm::none, kernel::Norm::layer, kernel::Norm::rms})
    for (const Index period : {Index{1}, Index{4}, rows})
      for (const Index n : widths) {
        Tensor table({vocabulary, n}, 1), added({period, n}, 2), gamma({n}), beta({n}), out({rows, n}, 3);
        table.normal(1);
        added.normal(2);
        gamma.normal(3);
        beta.normal(4);
        std::vector<double> expected;
        for (Index r = 0; r < rows; ++r) {
          std::vector<double> row;
          for (Index i = 0; i < n; ++i)
            row.push_back(1.5 * static_cast<double>(table.at({ids32[static_cast<std::size_t>(r)], i})) +
                          static_cast<double>(added.at({r % period, i})));
          if (norm != kernel::Norm::none)
            row = normalised(row, &gamma, norm == kernel::Norm::layer ? &beta : nullptr, norm == kernel::Norm::layer,
                             1e-5);
          expected.insert(expected.end(), row.begin(), row.end());
        }
        const Index shape[] = {rows};
        for (const Table* t : tables())
          for (const DType type : {i32, i64})
            BOOST_TEST_CONTEXT(t->isa << " width " << n << " period " << period << " norm " << static_cast<int>(norm)) {
              void* ids = type == i32 ? static_cast<void*>(ids32.data()) : static_cast<void*>(ids64.data());
              std::int32_t bad = 0;
              kernel::EmbeddingSum args{dense_view(ids, type, shape),
                                        table.view,
                                        added.view,
                                        gamma.view,
                                        beta.view,
                                        out.view,
                                        1.5f,
                                        norm,
                                        1e-5f,
                                        &bad};
              out.fill(quiet_nan);
              run(t->embedding_sum, args);
              BOOST_TEST(distance(out.values(), expected) <= 3e-5);
              BOOST_TEST(out.intact());
              BOOST_TEST(bad == 0);
              const auto whole = out.values();
              out.fill(quiet_nan);
              run(t->embedding_sum, args, 1);
              BOOST_TEST(same_bits(whole, out.values()));
            }
      }
}

BOOST_AUTO_TEST_CASE(embedding_sum_reports_ids_outside_the_table) {
  const Index shape[] = {2};
  for (const std::int32_t wrong : {-1, 3}) {
    std::int32_t ids[] = {wrong, 1};
    Tensor table({3, 5}), added({1, 5}), out({2, 5}, 1);
    table.normal(1);
    added.normal(2);
    for (const Table* t : tables()) {
      std::int32_t bad = 0;
      out.fill(quiet_nan);
      run(t->embedding_sum, {.ids = dense_view(ids, i32, shape),
                             .table = table.view,
                             .rows = added.view,
                             .gamma = {},
                             .beta = {},
                             .out = out.view,
                             .bad = &bad});
      BOOST_TEST(bad == 1);
      for (Index i = 0; i < 5; ++i) {
        BOOST_TEST(out.at({0, i}) == added.at({0, i}));
        BOOST_TEST(out.at({1, i}) == table.at({1, i}) + added.at({0, i}));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(gated_linear) {
  const std::vector<std::vector<Index>> shapes = {{0, 5, 5},    {5, 0, 5},  {5, 5, 0},   {1, 1, 1},   {1, 64, 48},
                                                  {3, 17, 5},   {7, 9, 33}, {8, 16, 48}, {9, 33, 49}, {200, 40, 100},
                                                  {13, 30, 95}, {4, 8, 15}, {4, 8, 16},  {4, 8, 17}};
  for (const auto& s : shapes)
    for (const bool full : {false, true}) {
      const Index m = s[0], k = s[1], n = s[2];
      Tensor a({m, k}, 3), gate({k, n}, 1), up({k, n}, 2), gate_bias({n}), up_bias({n}), out({m, n}, 1), first({m, n}),
          second({m, n});
      a.normal(1);
      gate.normal(2, 0.3f);
      up.normal(3, 0.3f);
      gate_bias.normal(4);
      up_bias.normal(5);
      std::vector<double> expected;
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) {
          double x = full ? static_cast<double>(gate_bias.at({j})) : 0,
                 y = full ? static_cast<double>(up_bias.at({j})) : 0;
          for (Index l = 0; l < k; ++l) {
            x += static_cast<double>(a.at({i, l})) * static_cast<double>(gate.at({l, j}));
            y += static_cast<double>(a.at({i, l})) * static_cast<double>(up.at({l, j}));
          }
          expected.push_back((full ? x / (1 + std::exp(-x)) : x) * y);
        }
      double largest = 1;
      for (const double e : expected) largest = std::max(largest, std::fabs(e));
      for (const Table* t : tables()) {
        std::vector<float> packed_gate(t->packed_bytes(k, n) / 4 + 1), packed_up(packed_gate.size());
        t->pack(gate.view, packed_gate.data());
        t->pack(up.view, packed_up.data());
        kernel::GatedLinear args{a.view,   {packed_gate.data(), k, n}, {packed_up.data(), k, n}, {}, {},
                                 out.view, kernel::Unary::identity};
        if (full) args.gate_bias = gate_bias.view, args.up_bias = up_bias.view, args.activation = kernel::Unary::silu;
        out.fill(quiet_nan);
        run(t->gated_linear, args);
        BOOST_TEST_CONTEXT(t->isa << " " << m << " " << k << " " << n << " full " << full) {
          BOOST_TEST(distance(out.values(), expected) <= 2e-6 * largest);
          BOOST_TEST(out.intact());
          const auto whole = out.values();
          out.fill(quiet_nan);
          run(t->gated_linear, args, 1);
          BOOST_TEST(same_bits(whole, out.values()));
          // The kernels that it stands for: two projections, multiplied.
          run(t->linear, {a.view, args.gate, args.gate_bias, {}, first.view, args.activation});
          run(t->linear, {a.view, args.up, args.up_bias, {}, second.view, kernel::Unary::identity});
          std::vector<float> product = first.values();
          const auto factors = second.values();
          for (std::size_t i = 0; i < product.size(); ++i) product[i] *= factors[i];
          BOOST_TEST(same_bits(whole, product));
        }
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()

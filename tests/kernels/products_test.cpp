// Linear, matmul and linear attention of every ISA against plain loops in float64.

#include "support.hpp"

using namespace kernel_test;

BOOST_AUTO_TEST_SUITE(products)

BOOST_AUTO_TEST_CASE(linear) {
  const std::vector<std::vector<Index>> shapes = {{0, 5, 5},   {5, 0, 5},      {5, 5, 0},    {1, 1, 1},
                                                  {1, 64, 48}, {3, 17, 5},     {7, 9, 33},   {8, 16, 48},
                                                  {9, 33, 49}, {200, 40, 100}, {13, 300, 95}};
  for (const auto& s : shapes)
    for (int variant = 0; variant < 4; ++variant) {
      const Index m = s[0], k = s[1], n = s[2];
      const bool turned = variant % 2 == 1, full = variant >= 2;
      Tensor a({m, k}, 3), w(turned ? std::vector<Index>{n, k} : std::vector<Index>{k, n}, 1), bias({n}),
          residual({m, n}, 2), out({m, n}, 1);
      a.normal(1);
      w.normal(2, 0.1f);
      bias.normal(3);
      residual.normal(4);
      TensorView view = w.view;
      if (turned) std::swap(view.shape[0], view.shape[1]), std::swap(view.strides[0], view.strides[1]);
      std::vector<double> expected;
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) {
          double x = full ? static_cast<double>(bias.at({j})) : 0;
          for (Index l = 0; l < k; ++l)
            x += static_cast<double>(a.at({i, l})) *
                 static_cast<double>(view.as<float>()[l * view.strides[0] + j * view.strides[1]]);
          if (full) x = x / (1 + std::exp(-x)) + static_cast<double>(residual.at({i, j}));
          expected.push_back(x);
        }
      for (const Table* t : tables()) {
        std::vector<float> packed(t->packed_bytes(k, n) / 4 + 1, Tensor::guard);
        t->pack(view, packed.data());
        BOOST_TEST(packed.back() == Tensor::guard);
        kernel::Linear args{a.view, {packed.data(), k, n}, {}, {}, out.view, kernel::Unary::identity};
        if (full) args.bias = bias.view, args.residual = residual.view, args.activation = kernel::Unary::silu;
        out.fill(quiet_nan);
        run(t->linear, args);
        BOOST_TEST_CONTEXT(t->isa << " " << m << " " << k << " " << n << " variant " << variant) {
          BOOST_TEST(distance(out.values(), expected) <= 1e-5);
          BOOST_TEST(out.intact());
          const auto whole = out.values();
          out.fill(quiet_nan);
          run(t->linear, args, 1);
          BOOST_TEST(same_bits(whole, out.values()));
          if (full && m > 0) {  // a row alone gives the same bits as among others
            kernel::Linear one = args;
            one.a.shape[0] = one.residual.shape[0] = one.out.shape[0] = 1;
            out.fill(quiet_nan);
            run(t->linear, one);
            for (Index j = 0; j < n; ++j) BOOST_TEST(out.at({0, j}) == whole[static_cast<std::size_t>(j)]);
          }
        }
      }
    }
}
BOOST_AUTO_TEST_CASE(matmul) {
  const std::vector<std::vector<Index>> shapes = {{0, 3, 3}, {3, 0, 3},     {3, 3, 0},     {1, 1, 1},
                                                  {5, 7, 9}, {17, 600, 50}, {200, 20, 49}, {9, 513, 16}};
  for (const auto& s : shapes)
    for (int variant = 0; variant < 4; ++variant) {  // a and b each as they are, or a transposed view
      const Index m = s[0], k = s[1], n = s[2];
      const bool ta = variant % 2 == 1, tb = variant >= 2;
      Tensor a(ta ? std::vector<Index>{2, 1, k, m} : std::vector<Index>{2, 1, m, k}, 1),
          b(tb ? std::vector<Index>{1, 3, n, k} : std::vector<Index>{1, 3, k, n}, 2), out({2, 3, m, n}, 3);
      a.normal(1);
      b.normal(2);
      kernel::MatMul args{a.view, b.view, out.view, 0.5f};
      if (ta) std::swap(args.a.shape[2], args.a.shape[3]), std::swap(args.a.strides[2], args.a.strides[3]);
      if (tb) std::swap(args.b.shape[2], args.b.shape[3]), std::swap(args.b.strides[2], args.b.strides[3]);
      args.a.shape[1] = 3, args.a.strides[1] = 0;
      args.b.shape[0] = 2, args.b.strides[0] = 0;
      std::vector<double> expected;
      const auto at = [](const TensorView& t, Index i, Index j, Index x, Index y) {
        return static_cast<double>(
            t.as<float>()[i * t.strides[0] + j * t.strides[1] + x * t.strides[2] + y * t.strides[3]]);
      };
      for (Index i = 0; i < 2; ++i)
        for (Index j = 0; j < 3; ++j)
          for (Index x = 0; x < m; ++x)
            for (Index y = 0; y < n; ++y) {
              double sum = 0;
              for (Index l = 0; l < k; ++l) sum += at(args.a, i, j, x, l) * at(args.b, i, j, l, y);
              expected.push_back(0.5 * sum);
            }
      for (const Table* t : tables()) {
        out.fill(quiet_nan);
        run(t->matmul, args);
        BOOST_TEST_CONTEXT(t->isa << " " << m << " " << k << " " << n << " variant " << variant) {
          BOOST_TEST(distance(out.values(), expected) <= 5e-5);
          BOOST_TEST(out.intact());
          const auto whole = out.values();
          out.fill(quiet_nan);
          run(t->matmul, args, 1);
          BOOST_TEST(same_bits(whole, out.values()));
        }
      }
    }
}
BOOST_AUTO_TEST_CASE(linear_attention) {
  struct Case {
    Index q_len, k_len, dim, values;
    bool causal, lengths, state;
  };
  const Case cases[] = {{0, 0, 4, 4, true, false, false},     {1, 1, 1, 1, true, false, true},
                        {50, 50, 16, 16, true, false, false}, {50, 50, 16, 16, false, true, false},
                        {130, 130, 7, 20, true, true, true},  {20, 100, 8, 8, true, false, false},
                        {100, 20, 8, 8, true, false, false},  {60, 97, 33, 64, false, false, true}};
  const auto phi = [](float x) { return x > 0 ? static_cast<double>(x) + 1 : std::exp(static_cast<double>(x)); };
  for (const Case& c : cases) {
    Tensor q({2, 4, c.q_len, c.dim}, 1), k({2, 2, c.k_len, c.dim}, 2), v({2, 2, c.k_len, c.values}),
        out({2, 4, c.q_len, c.values}, 3), state({2, 4, c.dim, c.values + 1});
    q.normal(1);
    k.normal(2);
    v.normal(3);
    std::vector<std::int32_t> lengths = {static_cast<std::int32_t>(c.k_len / 2),
                                         static_cast<std::int32_t>(c.k_len) + 3};
    const Index shape[] = {2};
    std::vector<double> expected, expected_state;
    for (Index b = 0; b < 2; ++b)
      for (Index h = 0; h < 4; ++h) {
        const Index keys = c.lengths ? std::min<Index>(lengths[static_cast<std::size_t>(b)], c.k_len) : c.k_len;
        std::vector<double> s(static_cast<std::size_t>(c.dim * (c.values + 1)), c.state ? 0.25 : 0.0);
        Index seen = 0;
        const auto absorb = [&](Index end) {
          for (; seen < end; ++seen)
            for (Index d = 0; d < c.dim; ++d)
              for (Index e = 0; e <= c.values; ++e)
                s[static_cast<std::size_t>(d * (c.values + 1) + e)] +=
                    phi(k.at({b, h / 2, seen, d})) *
                    (e < c.values ? static_cast<double>(v.at({b, h / 2, seen, e})) : 1.0);
        };
        if (!c.causal) absorb(keys);
        for (Index i = 0; i < c.q_len; ++i) {
          if (c.causal) absorb(std::min(i + c.k_len - c.q_len + 1, keys));
          std::vector<double> o(static_cast<std::size_t>(c.values + 1), 0.0);
          for (Index d = 0; d < c.dim; ++d)
            for (Index e = 0; e <= c.values; ++e)
              o[static_cast<std::size_t>(e)] +=
                  phi(q.at({b, h, i, d})) * s[static_cast<std::size_t>(d * (c.values + 1) + e)];
          for (Index e = 0; e < c.values; ++e)
            expected.push_back(o.back() == 0 ? 0 : o[static_cast<std::size_t>(e)] / o.back());
        }
        expected_state.insert(expected_state.end(), s.begin(), s.end());
      }
    for (const Table* t : tables()) {
      kernel::LinearAttention args;
      args.q = q.view, args.k = k.view, args.v = v.view, args.out = out.view;
      if (c.lengths) args.key_lengths = dense_view(lengths.data(), i32, shape);
      if (c.state) args.state = state.view;
      args.causal = c.causal;
      state.fill(0.25f);
      out.fill(quiet_nan);
      run(t->linear_attention, args);
      BOOST_TEST_CONTEXT(t->isa << " " << c.q_len << " " << c.k_len << " causal " << c.causal) {
        BOOST_TEST(distance(out.values(), expected) <= 5e-6);
        BOOST_TEST(out.intact());
        if (c.state) BOOST_TEST(distance(state.values(), expected_state) <= 2e-4);
        const auto whole = out.values();
        state.fill(0.25f);
        run(t->linear_attention, args, 1);
        BOOST_TEST(same_bits(whole, out.values()));
        if (c.state) continue;
        for (const std::size_t piece : {~std::size_t{0}, std::size_t{1}}) {
          out.fill(quiet_nan);
          run(t->linear_attention_quadratic, args, piece);
          BOOST_TEST(distance(out.values(), expected) <= 5e-6);
          BOOST_TEST(out.intact());
        }
      }
    }
  }
}
BOOST_AUTO_TEST_CASE(a_nan_reaches_only_later_tokens) {
  Tensor q({1, 1, 70, 8}), k({1, 1, 70, 8}), v({1, 1, 70, 8}), out({1, 1, 70, 8});
  q.normal(1);
  k.normal(2);
  v.normal(3);
  v.at({0, 0, 20, 3}) = quiet_nan;
  k.at({0, 0, 60, 2}) = quiet_nan;
  for (const Table* t : tables()) {
    kernel::LinearAttention args;
    args.q = q.view, args.k = k.view, args.v = v.view, args.out = out.view;
    args.causal = true;
    for (const auto& form : {t->linear_attention, t->linear_attention_quadratic}) {
      out.fill(0.0f);
      run(form, args);
      for (Index i = 0; i < 70; ++i) {
        BOOST_TEST(std::isnan(out.at({0, 0, i, 3})) == (i >= 20));
        BOOST_TEST(std::isnan(out.at({0, 0, i, 4})) == (i >= 60));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Recurrent attention in chunks and token by token, linear attention in every form: against float64, on every ISA.

#include "support.hpp"

#include <treadle/ops/reference.hpp>

using namespace kernel_test;

namespace {

using Array = reference::Array<double>;

Array array_of(Tensor& t) {
  Array a;
  a.shape.assign(t.view.shape.begin(), t.view.shape.begin() + t.view.rank);
  for (const float x : t.values()) a.data.push_back(static_cast<double>(x));
  return a;
}

/// The largest difference, relative to the largest number of `b`, at least 1.
double relative(const std::vector<float>& a, const std::vector<double>& b) {
  double largest = 1;
  for (const double x : b) largest = std::max(largest, std::abs(x));
  return distance(a, b) / largest;
}

struct Sizes {
  Index length, dim, values, heads = 2, kv_heads = 1;
};

/// What a recurrent kernel is given. Gates are −strength times a number in [0, 1); `shared`: one for all channels.
struct Call {
  Tensor q, k, v, gate, beta, initial, state, out;
  kernel::RecurrentAttention args;

  Call(const Sizes& s, float strength, bool shared, bool delta, bool carried)
      : q({2, s.heads, s.length, s.dim}, 1),
        k({2, s.kv_heads, s.length, s.dim}, 2),
        v({2, s.kv_heads, s.length, s.values}),
        gate({2, s.heads, s.length, shared ? 1 : s.dim}),
        beta({2, s.heads, s.length}, 1),
        initial({2, s.heads, s.dim, s.values}),
        state({2, s.heads, s.dim, s.values}, 1),
        out({2, s.heads, s.length, s.values}, 3) {
    q.normal(1);
    k.normal(2, delta ? 1 / std::sqrt(static_cast<float>(s.dim)) : 1.0f);
    v.normal(3);
    std::mt19937 random(4);
    std::uniform_real_distribution<float> number(0, 1);
    gate.each([&](float& x) { x = -strength * number(random); });
    beta.each([&](float& x) { x = number(random); });
    initial.normal(5);
    args.q = q.view, args.k = k.view, args.v = v.view, args.out = out.view, args.state = state.view;
    args.scale = 0.5f;
    if (strength > 0) {
      args.log_gate = gate.view;
      if (shared) args.log_gate.shape[3] = s.dim, args.log_gate.strides[3] = 0;
    }
    if (delta) args.beta = beta.view;
    if (carried) args.initial = initial.view;
  }
  /// Outputs, then the state.
  std::pair<std::vector<double>, std::vector<double>> expected() {
    const Array aq = array_of(q), ak = array_of(k), av = array_of(v), ag = array_of(gate), ab = array_of(beta);
    Array s = array_of(initial);
    if (!args.initial) std::fill(s.data.begin(), s.data.end(), 0.0);
    const Array y = reference::recurrent_attention<double>(
        {aq, ak, av, args.log_gate ? &ag : nullptr, args.beta ? &ab : nullptr, 0.5}, s);
    return {y.data, s.data};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(recurrent_kernels)

BOOST_AUTO_TEST_CASE(chunks_and_steps_are_the_recurrence) {
  const Sizes sizes[] = {{0, 3, 4},         {1, 1, 1},   {2, 5, 17},         {11, 16, 3},
                         {13, 7, 33, 4, 2}, {49, 8, 16}, {100, 19, 48, 2, 2}};
  for (const Sizes& s : sizes)
    for (const float strength : {0.0f, 1.0f, 9.0f, 300.0f})
      for (const bool shared : {false, true})
        for (const bool delta : {false, true}) {
          if (strength == 0 && shared) continue;
          const bool carried = shared == delta;
          Call c(s, strength, shared, delta, carried);
          const auto [y, left] = c.expected();
          for (const Table* t : tables())
            for (const auto& form : {t->recurrent_attention, t->recurrent_attention_recurrent}) {
              c.out.fill(quiet_nan);
              c.state.fill(quiet_nan);
              run(form, c.args);
              BOOST_TEST_CONTEXT(t->isa << " " << form.name << " length " << s.length << " gates " << strength
                                        << (shared ? " shared" : "") << (delta ? " delta" : "")) {
                BOOST_TEST(relative(c.out.values(), y) < 5e-6);
                BOOST_TEST(relative(c.state.values(), left) < 5e-6);
                BOOST_TEST((c.out.intact() && c.state.intact()));
                const auto whole = c.out.values(), kept = c.state.values();
                run(form, c.args, 1);
                BOOST_TEST((same_bits(whole, c.out.values()) && same_bits(kept, c.state.values())));
                if (carried) {  // in place
                  c.args.state = c.args.initial;
                  const auto before = c.initial.values();
                  run(form, c.args);
                  BOOST_TEST((same_bits(whole, c.out.values()) && same_bits(kept, c.initial.values())));
                  std::size_t i = 0;
                  c.initial.each([&](float& x) { x = before[i++]; });
                  c.args.state = c.state.view;
                }
              }
            }
        }
}

BOOST_AUTO_TEST_CASE(a_nan_reaches_only_later_tokens) {
  for (const bool delta : {false, true}) {
    Call c({70, 8, 8, 1, 1}, 0.5f, false, delta, false);
    c.v.at({0, 0, 20, 3}) = quiet_nan;
    c.k.at({0, 0, 60, 2}) = infinity;
    for (const Table* t : tables())
      for (const auto& form : {t->recurrent_attention, t->recurrent_attention_recurrent}) {
        c.out.fill(0.0f);
        run(form, c.args);
        for (Index i = 0; i < 70; ++i) {
          BOOST_TEST(std::isfinite(c.out.at({0, 0, i, 3})) == (i < 20));
          BOOST_TEST(std::isfinite(c.out.at({0, 0, i, 4})) == (i < 60));
        }
      }
  }
}

BOOST_AUTO_TEST_CASE(a_gate_of_minus_infinity_clears_its_row) {
  Call c({40, 5, 9, 1, 1}, 0.5f, true, false, true);
  c.initial.fill(quiet_nan);
  c.gate.at({0, 0, 25, 0}) = c.gate.at({1, 0, 0, 0}) = -infinity;
  for (const Table* t : tables())
    for (const auto& form : {t->recurrent_attention, t->recurrent_attention_recurrent}) {
      run(form, c.args);
      for (Index i = 0; i < 40; ++i) {
        BOOST_TEST(std::isnan(c.out.at({0, 0, i, 2})) == (i < 25));
        BOOST_TEST(std::isfinite(c.out.at({1, 0, i, 2})));
      }
      BOOST_TEST(std::isfinite(c.state.at({0, 0, 4, 8})));
    }
}

/// A step costs a multiple of the state, not a chunk: the workspace says what is touched.
BOOST_AUTO_TEST_CASE(a_step_holds_no_chunk) {
  Call c({1, 64, 64}, 0.1f, false, true, true);
  for (const Table* t : tables())
    BOOST_TEST(t->recurrent_attention_recurrent.plan(c.args).workspace_bytes <= 64u * 4 * 4);
  kernel::LinearAttention a;
  a.q = c.q.view, a.k = c.k.view, a.v = c.v.view, a.out = c.out.view;
  Tensor state({2, 2, 64, 65});
  a.state = state.view;
  for (const Table* t : tables()) BOOST_TEST(t->linear_attention_recurrent.plan(a).workspace_bytes <= 128u * 4 * 4);
}

BOOST_AUTO_TEST_CASE(every_form_of_linear_attention) {
  struct Case {
    Index q_len, k_len, dim, values;
    bool causal, lengths, state;
  };
  const Case cases[] = {
      {1, 1, 1, 1, true, false, true},      {3, 3, 16, 16, true, false, true}, {50, 50, 7, 16, true, false, false},
      {50, 50, 16, 33, false, true, false}, {61, 61, 7, 20, true, true, true}, {20, 70, 8, 8, true, true, false},
      {70, 20, 8, 8, true, false, true},    {5, 0, 4, 4, false, false, true},  {2, 97, 33, 15, false, false, true}};
  using kernel::Feature;
  for (const Case& c : cases)
    for (const Feature feature : {Feature::elu_plus_one, Feature::relu, Feature::identity, Feature::exponentials}) {
      const bool exponents = feature == Feature::exponentials;
      Tensor q({2, 4, c.q_len, c.dim}, 1), k({2, 2, c.k_len, c.dim}, 2), v({2, 2, c.k_len, c.values}),
          out({2, 4, c.q_len, c.values}, 3), state({2, 4, c.dim, c.values + (exponents ? 2 : 1)}, 2);
      q.normal(1);
      k.normal(2, exponents ? 30.0f : 1.0f);
      v.normal(3);
      if (feature == Feature::identity) {  // positive, as features are
        q.each([](float& x) { x = x * x; });
        k.each([](float& x) { x = x * x; });
      }
      std::vector<std::int32_t> lengths = {static_cast<std::int32_t>(c.k_len / 2),
                                           static_cast<std::int32_t>(c.k_len) + 3};
      const Index shape[] = {2};
      const Array aq = array_of(q), ak = array_of(k), av = array_of(v), al{{2}, {lengths.begin(), lengths.end()}};
      Array before = array_of(state);
      std::fill(before.data.begin(), before.data.end(), 0.25);
      const activation named = feature == Feature::relu       ? activation::relu
                               : feature == Feature::identity ? activation::none
                               : exponents                    ? activation::exp
                                                              : activation::elu_plus_one;
      const float eps = exponents ? 0.0f : 0.5f;
      const Array y = reference::linear_attention<double>(aq, ak, av, c.lengths ? &al : nullptr, named, c.causal,
                                                          static_cast<double>(eps), c.state ? &before : nullptr);
      for (const Table* t : tables())
        for (const auto& form : {t->linear_attention, t->linear_attention_recurrent, t->linear_attention_quadratic}) {
          if (form.run == t->linear_attention_quadratic.run && (exponents || c.state)) continue;
          kernel::LinearAttention args;
          args.q = q.view, args.k = k.view, args.v = v.view, args.out = out.view;
          if (c.lengths) args.key_lengths = dense_view(lengths.data(), i32, shape);
          if (c.state) args.state = state.view;
          args.feature = feature;
          args.causal = c.causal;
          args.eps = eps;
          out.fill(quiet_nan);
          state.fill(0.25f);
          run(form, args);
          BOOST_TEST_CONTEXT(t->isa << " " << form.name << " " << static_cast<int>(feature) << " " << c.q_len << " of "
                                    << c.k_len << " causal " << c.causal) {
            BOOST_TEST(relative(out.values(), y.data) < 1e-5);
            if (c.state) BOOST_TEST(relative(state.values(), before.data) < 2e-5);
            BOOST_TEST((out.intact() && state.intact()));
          }
        }
    }
}

/// Norms that grow by a factor of 1000, and that shrink, over the sequence: exponents of ±10⁵ and beyond.
BOOST_AUTO_TEST_CASE(exponents_of_any_size) {
  for (const bool grows : {true, false})
    for (const bool causal : {true, false}) {
      constexpr Index n = 90, features = 13, values = 5;
      Tensor q({1, 1, n, features}), k({1, 1, n, features}), v({1, 1, n, values}), out({1, 1, n, values});
      q.normal(1, 4.0f);
      k.normal(2);
      v.normal(3);
      for (Index i = 0; i < n; ++i) {
        const float norm = std::pow(1000.0f, static_cast<float>(grows ? i : n - 1 - i) / (n - 1));
        for (Index d = 0; d < features; ++d) {
          float& x = k.at({0, 0, i, d});
          x = norm * 3.0f * x + (i % 2 == 0 ? 0.5f : -0.5f) * norm * norm;  // w·k ± |k|²/2
        }
      }
      // softmax over keys of log Σ_f exp(q_if + k_jf), without any common level.
      std::vector<double> expected;
      for (Index i = 0; i < n; ++i) {
        std::vector<double> log_weight;
        double largest = -INFINITY;
        for (Index j = 0; j < (causal ? i + 1 : n); ++j) {
          double top = -INFINITY, sum = 0;
          for (int pass = 0; pass < 2; ++pass)
            for (Index d = 0; d < features; ++d) {
              const double e = static_cast<double>(q.at({0, 0, i, d})) + static_cast<double>(k.at({0, 0, j, d}));
              if (pass == 0)
                top = std::max(top, e);
              else
                sum += std::exp(e - top);
            }
          log_weight.push_back(top + std::log(sum));
          largest = std::max(largest, log_weight.back());
        }
        double sum = 0;
        for (double& w : log_weight) sum += w = std::exp(w - largest);
        for (Index e = 0; e < values; ++e) {
          double y = 0;
          for (std::size_t j = 0; j < log_weight.size(); ++j)
            y += log_weight[j] / sum * static_cast<double>(v.at({0, 0, static_cast<Index>(j), e}));
          expected.push_back(y);
        }
      }
      const Array oracle = reference::linear_attention<double>(array_of(q), array_of(k), array_of(v), nullptr,
                                                               activation::exp, causal, 0);
      for (std::size_t i = 0; i < expected.size(); ++i) BOOST_TEST(std::abs(oracle.data[i] - expected[i]) < 1e-9);
      for (const Table* t : tables())
        for (const auto& form : {t->linear_attention, t->linear_attention_recurrent}) {
          kernel::LinearAttention args;
          args.q = q.view, args.k = k.view, args.v = v.view, args.out = out.view;
          args.feature = kernel::Feature::exponentials;
          args.causal = causal;
          out.fill(quiet_nan);
          run(form, args);
          BOOST_TEST_CONTEXT(t->isa << " " << form.name << " grows " << grows << " causal " << causal)
          BOOST_TEST(distance(out.values(), expected) < 1e-5);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

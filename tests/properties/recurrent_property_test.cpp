// Retention, gates and delta rules as kernels compute them (in chunks or token by token, with and without a state)
// against N × N weights: products of decays, and for the delta rule the inverse of a unit triangular matrix.
// TREADLE_RANDOM_ROUNDS sets how many rounds there are.

#include "property.hpp"

#include <treadle/ops/recurrent_attention.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

/// What the definition is made of; log gates of rank 4, each dim whole or 1; beta [batch, heads, rows, 1].
struct Definition {
  Cube q, k, v;
  double scale = 1;
  const Cube *gate = nullptr, *beta = nullptr, *state = nullptr;
};

/// One head. With G the sums of log gates up to a token, and e^G taken channel by channel:
///   P_ij = scale q_i (e^(G_i − G_j) ∘ k_j), j ≤ i;  L_ij = k_i (e^(G_i − G_j) ∘ k_j), j < i
///   U = T (V − (e^G ∘ K) S) with T = (I + diag(β) L)^−1 diag(β) for the delta rule, else U = V
///   out = P U + scale (e^G ∘ Q) S,  left = e^(G_N) ∘ S + Σ_j e^(G_N − G_j) k_j u_jᵀ
/// (Yang et al. 2024, Parallelizing Linear Transformers with the Delta Rule, eq. 10 and 11; 2025, Gated Delta Networks,
/// §3.3).
struct DenseHead {
  const Definition& d;
  std::int64_t b, h, g;
  std::int64_t rows = d.q.rows, dim = d.q.columns, value_dim = d.v.columns;
  Cube sums{1, 1, rows + 1, dim};  // row t: up to token t − 1 counted from 0

  DenseHead(const Definition& of, std::int64_t element, std::int64_t head)
      : d(of), b(element), h(head), g(head / (of.q.heads / of.k.heads)) {
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t c = 0; c < dim; ++c) {
        const Cube* a = d.gate;
        const double log = a == nullptr ? 0
                                        : (*a)(a->batch == 1 ? 0 : b, a->heads == 1 ? 0 : h, a->rows == 1 ? 0 : t,
                                               a->columns == 1 ? 0 : c);
        sums(0, 0, t + 1, c) = sums(0, 0, t, c) + log;
      }
  }
  /// Σ_c x_ic e^(G_ic − G_jc) k_jc.
  double product(const Cube& x, std::int64_t head, std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t c = 0; c < dim; ++c)
      sum += x(b, head, i, c) * d.k(b, g, j, c) *
             (d.gate == nullptr ? 1 : std::exp(sums(0, 0, i + 1, c) - sums(0, 0, j + 1, c)));
    return sum;
  }
  /// Σ_c x_ic e^(G_ic) S_ce.
  double from_state(const Cube& x, std::int64_t head, std::int64_t i, std::int64_t e) const {
    double sum = 0;
    for (std::int64_t c = 0; d.state != nullptr && c < dim; ++c)
      sum += x(b, head, i, c) * std::exp(sums(0, 0, i + 1, c)) * (*d.state)(b, h, c, e);
    return sum;
  }
  /// (I + diag(β) L)^−1 diag(β), column by column.
  Cube transform() const {
    Cube lower(1, 1, rows, rows), t(1, 1, rows, rows);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < i; ++j) lower(0, 0, i, j) = (*d.beta)(b, h, i, 0) * product(d.k, g, i, j);
    for (std::int64_t column = 0; column < rows; ++column)
      for (std::int64_t i = column; i < rows; ++i) {
        double x = i == column ? (*d.beta)(b, h, i, 0) : 0;
        for (std::int64_t j = column; j < i; ++j) x -= lower(0, 0, i, j) * t(0, 0, j, column);
        t(0, 0, i, column) = x;
      }
    return t;
  }
  void add_to(Cube& out, Cube& left) const {
    Cube u(1, 1, rows, value_dim), p(1, 1, rows, rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t e = 0; e < value_dim; ++e)
        u(0, 0, i, e) = d.v(b, g, i, e) - (d.beta != nullptr ? from_state(d.k, g, i, e) : 0);
      for (std::int64_t j = 0; j <= i; ++j) p(0, 0, i, j) = d.scale * product(d.q, h, i, j);
    }
    const Cube weights = d.beta != nullptr ? plain_product(p, transform()) : p;  // of values: N × N
    const Cube y = plain_product(weights, u);
    if (d.beta != nullptr) u = plain_product(transform(), u);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t e = 0; e < value_dim; ++e) out(b, h, i, e) = y(0, 0, i, e) + d.scale * from_state(d.q, h, i, e);
    for (std::int64_t c = 0; c < dim; ++c)
      for (std::int64_t e = 0; e < value_dim; ++e) {
        double sum = d.state != nullptr ? std::exp(sums(0, 0, rows, c)) * (*d.state)(b, h, c, e) : 0;
        for (std::int64_t j = 0; j < rows; ++j)
          sum += std::exp(sums(0, 0, rows, c) - sums(0, 0, j + 1, c)) * d.k(b, g, j, c) * u(0, 0, j, e);
        left(b, h, c, e) = sum;
      }
  }
};

Results dense(const Definition& d) {
  Cube out(d.q.batch, d.q.heads, d.q.rows, d.v.columns), left(d.q.batch, d.q.heads, d.q.columns, d.v.columns);
  for (std::int64_t b = 0; b < d.q.batch; ++b)
    for (std::int64_t h = 0; h < d.q.heads; ++h) DenseHead(d, b, h).add_to(out, left);
  return {{"y", out.data}, {"left", left.data}};
}

enum class gate_kind : std::uint8_t { none, decays, any };
struct Kind {
  gate_kind gate = gate_kind::none;
  bool delta = false;
};

void check_kind(Round& r, const Kind& kind) {
  Heads x(r, {.equal = true});
  const auto scale = x.scale(r);
  const bool carried = r.note("state", r.maybe());
  Node gate, beta, state;
  std::vector<double> decays;
  if (kind.gate == gate_kind::decays && r.note("own decays", r.maybe()))
    for (std::int64_t h = 0; h < x.heads; ++h)
      decays.push_back(r.note("decay", std::vector<double>{1, 0.99, 0.5, 1e-2, 1e-9,
                                                           r.real(0.01, 1)}[static_cast<std::size_t>(r.pick(0, 5))]));
  const auto size = [&](const char* name, std::int64_t whole) { return r.note(name, r.maybe() ? whole : 1); };
  if (kind.gate == gate_kind::any) {
    const std::int64_t b = size("gate over batch", x.batch), h = size("heads", x.heads), rows = size("rows", x.q_len),
                       c = size("channels", x.head_dim);
    gate = x.g.input("gate", f32, {b, h, rows, c});
  }
  if (kind.delta) beta = reshape(x.g.input("beta", f32, {x.batch, x.heads, x.q_len, 1}), {x.batch, x.heads, x.q_len});
  if (carried) state = x.g.input("state", f32, {x.batch, x.heads, x.head_dim, x.value_dim});
  const RecurrentOptions o{.state = state, .scale = scale};
  RecurrentResult y;
  if (kind.gate == gate_kind::decays)
    y = retention(x.q, x.k, x.v, {.decays = decays, .scale = scale, .state = state});
  else if (kind.delta && kind.gate == gate_kind::any)
    y = gated_delta_rule(x.q, x.k, x.v, gate, beta, o);
  else if (kind.delta)
    y = delta_rule(x.q, x.k, x.v, beta, o);
  else if (kind.gate == gate_kind::any)
    y = gated_linear_attention(x.q, x.k, x.v, gate, o);
  else
    y = recurrent_attention(x.q, x.k, x.v, o);
  x.g.output("y", y.out);
  x.g.output("left", y.state);
  const Graph g = x.finish(r);

  Tensors in = inputs_of(g, {}, r.seed());
  if (kind.delta) {  // keys of length 1 at most, so that nothing grows
    const float shrink = 1 / std::sqrt(static_cast<float>(x.head_dim));
    change(in, "k", [&](double e) { return e * static_cast<double>(shrink); });
    change(in, "beta", [](double e) { return (e + 1) / 2; });
  }
  if (kind.gate == gate_kind::any) {
    static constexpr double strengths[] = {0.01, 0.3, 3, 60};
    const double strength = r.note("strength", strengths[r.pick(0, 3)]);
    change(in, "gate", [&](double e) { return -strength * (e + 1) / 2; });
  }
  Definition d{cube_of(in, "q"), cube_of(in, "k"), cube_of(in, "v"), scale.value_or(x.usual_scale())};
  Cube gates, betas, before;
  if (kind.gate == gate_kind::any) gates = cube_of(in, "gate");
  if (kind.gate == gate_kind::decays) {
    gates = Cube(1, x.heads, 1, 1);
    for (std::int64_t h = 0; h < x.heads; ++h)
      gates(0, h, 0, 0) =
          std::log(decays.empty() ? 1 - std::exp2(-5.0 - static_cast<double>(h)) : decays[static_cast<std::size_t>(h)]);
  }
  if (kind.gate != gate_kind::none) d.gate = &gates;
  if (kind.delta) {
    betas = cube_of(in, "beta");
    d.beta = &betas;
  }
  if (carried) {
    before = cube_of(in, "state");
    d.state = &before;
  }
  const Results want = dense(d);
  expect(r, g, {}, in, want);
  std::vector<const char*> later{"k", "v"};
  if (kind.delta) later.push_back("beta");
  if (kind.gate == gate_kind::any && gates.rows == x.q_len && x.q_len > 1) later.push_back("gate");
  expect_causal(r, g, {}, in, want, later);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(recurrent_properties)

BOOST_AUTO_TEST_CASE(sums_without_decay) {
  property([](Round& r) { check_kind(r, {}); });
}
BOOST_AUTO_TEST_CASE(retention_of_any_decay) {
  property([](Round& r) { check_kind(r, {.gate = gate_kind::decays}); });
}
BOOST_AUTO_TEST_CASE(gated_linear_attention_of_any_gate) {
  property([](Round& r) { check_kind(r, {.gate = gate_kind::any}); });
}
BOOST_AUTO_TEST_CASE(delta_rules) {
  property([](Round& r) { check_kind(r, {.delta = true}); });
}
BOOST_AUTO_TEST_CASE(gated_delta_rules) {
  property([](Round& r) { check_kind(r, {.gate = gate_kind::any, .delta = true}); });
}

BOOST_AUTO_TEST_SUITE_END()

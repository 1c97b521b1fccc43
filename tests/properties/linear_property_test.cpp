// Linear attention and positive random features as kernels compute them (whole, in chunks, token by token) against the
// N × M weights of the definition, over random sizes, feature maps and numbers. TREADLE_RANDOM_ROUNDS sets how many
// rounds there are.

#include "property.hpp"

#include <treadle/ops/favor.hpp>
#include <treadle/ops/reference.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr auto leaky = feature_map([](auto x) { return where(x > 0.0, x + 0.25, 0.25 * exp(x * 3.0)); });
constexpr auto wave = feature_map([](auto x) { return 1.5 + tanh(x) * sigmoid(x) + abs(floor(x * 4.0)) * 0.125; });
constexpr auto cubic = feature_map([](auto x) { return x * x * x - 0.5 * x; });

struct Feature {
  const char* name;
  double (*value)(double);
  activation named = activation::none;
  const scalar::Function* traced = nullptr;
  bool is_positive = true;
};
const Feature features[] = {
    {"elu + 1", [](double x) { return x > 0 ? x + 1 : std::exp(x); }, activation::elu_plus_one},
    {"relu", [](double x) { return std::max(x, 0.0); }, activation::relu},
    {"leaky", [](double x) { return x > 0 ? x + 0.25 : 0.25 * std::exp(3 * x); }, activation::none, &leaky},
    {"wave", [](double x) { return 1.5 + std::tanh(x) / (1 + std::exp(-x)) + std::abs(std::floor(4 * x)) / 8; },
     activation::none, &wave},
    {"cubic", [](double x) { return x * x * x - x / 2; }, activation::none, &cubic, false},
    {"a node", [](double x) { return std::log1p(std::exp(x)); }},
};

Cube apply(Cube x, double (*f)(double)) {
  for (double& e : x.data) e = f(e);
  return x;
}

/// φ(q_i)·φ(k_j) of the keys that are seen, 0 of the others.
template <class Keep>
Cube products(const Cube& q, const Cube& k, Keep keep) {
  Cube w(q.batch, q.heads, q.rows, k.rows);
  for (std::int64_t b = 0; b < q.batch; ++b)
    for (std::int64_t h = 0; h < q.heads; ++h)
      for (std::int64_t i = 0; i < q.rows; ++i)
        for (std::int64_t j = 0; j < k.rows; ++j) {
          if (!keep(b, i, j)) continue;
          for (std::int64_t c = 0; c < q.columns; ++c)
            w(b, h, i, j) += q(b, h, i, c) * k(b, h / (q.heads / k.heads), j, c);
        }
  return w;
}

/// (W v + φ(q) S) / (W 1 + φ(q)·z + eps) for W of `products` and a state [S | z] of earlier keys, if there is one.
Cube quotient(const Cube& w, const Cube& v, const Cube& q, const Cube* state, double eps) {
  Cube out = weigh(w, v);
  for (std::int64_t b = 0; b < w.batch; ++b)
    for (std::int64_t h = 0; h < w.heads; ++h)
      for (std::int64_t i = 0; i < w.rows; ++i) {
        double sum = eps;
        for (std::int64_t j = 0; j < w.columns; ++j) sum += w(b, h, i, j);
        for (std::int64_t c = 0; state != nullptr && c < q.columns; ++c) {
          sum += q(b, h, i, c) * (*state)(b, h, c, v.columns);
          for (std::int64_t e = 0; e < v.columns; ++e) out(b, h, i, e) += q(b, h, i, c) * (*state)(b, h, c, e);
        }
        for (std::int64_t e = 0; e < v.columns; ++e) out(b, h, i, e) = sum != 0 ? out(b, h, i, e) / sum : 0;
      }
  return out;
}

/// [S | z] with the keys of this call.
Cube left_over(Cube state, const Cube& k, const Cube& v, const std::vector<std::int64_t>& keys) {
  const std::int64_t group = state.heads / k.heads;
  for (std::int64_t b = 0; b < state.batch; ++b)
    for (std::int64_t h = 0; h < state.heads; ++h)
      for (std::int64_t j = 0; j < keys[static_cast<std::size_t>(b)]; ++j)
        for (std::int64_t c = 0; c < k.columns; ++c)
          for (std::int64_t e = 0; e <= v.columns; ++e)
            state(b, h, c, e) += k(b, h / group, j, c) * (e < v.columns ? v(b, h / group, j, e) : 1);
  return state;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_properties)

BOOST_AUTO_TEST_CASE(linear_attention_of_any_feature) {
  property([](Round& r) {
    const Feature& feature = features[r.index() / 3 % std::size(features)];
    r.note("feature", feature.name);
    const bool is_causal = r.note("causal", r.maybe()), padded = r.note("padded", r.pick(0, 2) == 0),
               carried = r.note("state", r.pick(0, 2) == 0);
    Heads x(r, {});
    // What may cancel is kept away from 0.
    const double eps = r.note(
        "eps", feature.is_positive ? (r.maybe() ? 0 : r.real(0, 3)) : static_cast<double>(x.head_dim * (x.k_len + 2)));
    LinearAttentionOptions o{.causal = is_causal, .feature = feature.named, .eps = eps};
    if (feature.traced != nullptr) o.feature_map = *feature.traced;
    if (padded) o.key_lengths = x.g.input("lengths", i32, {x.batch});
    if (carried) o.state = x.g.input("state", f32, {x.batch, x.heads, x.head_dim, x.value_dim + 1});
    const bool by_node = feature.named == activation::none && feature.traced == nullptr;
    const Node q = by_node ? softplus(x.q) : x.q, k = by_node ? softplus(x.k) : x.k;
    const LinearAttentionResult y = linear_attention_from(q, k, x.v, o);
    x.g.output("y", y.out);
    if (carried) x.g.output("left", y.state);
    const Graph g = x.finish(r);

    Tensors in = inputs_of(g, {}, r.seed());
    std::vector<std::int64_t> keys(static_cast<std::size_t>(x.batch), x.k_len);
    if (padded) keys = draw_lengths(r, in, "lengths", x.k_len, {"k", "v"});
    if (carried) change(in, "state", [](double e) { return std::abs(e); });
    const Cube phi_q = apply(cube_of(in, "q"), feature.value), phi_k = apply(cube_of(in, "k"), feature.value),
               v = cube_of(in, "v"), state = carried ? cube_of(in, "state") : Cube();
    const Cube w = products(phi_q, phi_k, [&](auto b, auto i, auto j) {
      return j < keys[static_cast<std::size_t>(b)] && (!is_causal || j <= i + x.k_len - x.q_len);
    });
    Results want{{"y", quotient(w, v, phi_q, carried ? &state : nullptr, eps).data}};
    if (carried) want["left"] = left_over(state, phi_k, v, keys).data;
    expect(r, g, {}, in, want);
    if (is_causal && x.q_len == x.k_len) expect_causal(r, g, {}, in, want);
  });
}

BOOST_AUTO_TEST_CASE(favor_of_both_estimators) {
  property([](Round& r) {
    const bool is_causal = r.note("causal", r.maybe()), padded = r.note("padded", r.pick(0, 2) == 0),
               carried = r.note("state", r.pick(0, 2) == 0), hyperbolic = r.note("hyperbolic", r.maybe()),
               given = r.note("projection given", r.pick(0, 3) == 0);
    Heads x(r, {});
    const std::int64_t rows = r.note("features", r.pick(1, 34)), seed = r.note("seed", r.pick(0, 1000)),
                       all = hyperbolic ? 2 * rows : rows, columns = x.value_dim + 2;
    FavorOptions o{.features = rows, .causal = is_causal, .seed = seed, .hyperbolic = hyperbolic};
    if (given) o.projection = x.g.input("projection", f32, {1, 1, rows, x.head_dim});
    if (given) o.projection = reshape(o.projection, {rows, x.head_dim});
    if (padded) o.key_lengths = x.g.input("lengths", i32, {x.batch});
    if (carried) o.state = x.g.input("state", f32, {x.batch, x.heads, all, columns});
    const LinearAttentionResult y = favor_attention_from(x.q, x.k, x.v, o);
    x.g.output("y", y.out);
    if (carried) x.g.output("left", y.state);
    const Graph g = x.finish(r);

    Tensors in = inputs_of(g, {}, r.seed());
    std::vector<std::int64_t> keys(static_cast<std::size_t>(x.batch), x.k_len);
    if (padded) keys = draw_lengths(r, in, "lengths", x.k_len, {"k", "v"});
    // exp(±w·x·s − s²|x|²/2), s = head_dim^(−1/4).
    std::vector<double> w;
    if (given) {
      w = values(in.at("projection"));
    } else {
      const auto drawn = reference::random_projection<double>(rows, x.head_dim, seed);
      w.assign(drawn.data.begin(), drawn.data.end());
    }
    const auto features_of = [&](const Cube& from) {
      Cube f(from.batch, from.heads, from.rows, all);
      const double s = std::pow(static_cast<double>(x.head_dim), -0.25);
      for (std::int64_t b = 0; b < f.batch; ++b)
        for (std::int64_t h = 0; h < f.heads; ++h)
          for (std::int64_t i = 0; i < f.rows; ++i)
            for (std::int64_t c = 0; c < all; ++c) {
              double dot = 0, square = 0;
              for (std::int64_t d = 0; d < x.head_dim; ++d) {
                dot += from(b, h, i, d) * w[static_cast<std::size_t>(c % rows * x.head_dim + d)];
                square += from(b, h, i, d) * from(b, h, i, d);
              }
              f(b, h, i, c) = std::exp((c < rows ? s : -s) * dot - s * s * square / 2);
            }
      return f;
    };
    // A row of a state: sums of exp(exponent − level) [v | 1], and the level.
    const auto unscaled = [&](const std::vector<double>& rows_of) {
      Cube s(x.batch, x.heads, all, columns - 1);
      for (std::size_t i = 0; i < s.data.size(); ++i) {
        const std::size_t at = i / static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(columns);
        s.data[i] = rows_of[at + i % static_cast<std::size_t>(columns - 1)] *
                    std::exp(rows_of[at + static_cast<std::size_t>(columns) - 1]);
      }
      return s;
    };
    if (carried) {
      const bool empty = r.note("empty state", r.maybe());
      const TensorView& t = in.at("state").view;
      for (std::int64_t i = 0; i < t.size(); ++i) {
        float& e = t.as<float>()[i];
        if (i % columns == columns - 2) e = std::abs(e) + 0.125f;
        if (empty) e = 0;
      }
    }
    const Cube phi_q = features_of(cube_of(in, "q")), phi_k = features_of(cube_of(in, "k")), v = cube_of(in, "v"),
               state = carried ? unscaled(values(in.at("state"))) : Cube();
    const Cube weights = products(phi_q, phi_k, [&](auto b, auto i, auto j) {
      return j < keys[static_cast<std::size_t>(b)] && (!is_causal || j <= i + x.k_len - x.q_len);
    });
    const Results want{{"y", quotient(weights, v, phi_q, carried ? &state : nullptr, 0).data}};
    const Results got = expect(r, g, {}, in, want);
    if (carried) near(r, "left", unscaled(got.at("left")).data, left_over(state, phi_k, v, keys).data);
    if (is_causal && x.q_len == x.k_len) expect_causal(r, g, {}, in, want);
  });
}

BOOST_AUTO_TEST_SUITE_END()

#pragma once
// FAVOR+: softmax attention approximated by positive orthogonal random features (Choromanski et al. 2021, Performer).

#include <treadle/ops/attention.hpp>

namespace treadle {

constexpr Outputs infer_random_projection(Graph& g, const NodeSpec& s, const Inputs&, Failure& f) {
  const std::int64_t features = rule::get_integer(s, key::features), dim = rule::get_integer(s, key::head_dim);
  if (features < 1 || dim < 1)
    return rule::fail(f, error_kind::bad_attribute, Text().append(features).append(" features of ").append(dim),
                      "at least 1 of each");
  return rule::one({g.dims.number(features), g.dims.number(dim)});
}

/// [features, head_dim]: Gaussian rows, orthogonal within each block of head_dim rows, from a seed; made once, at bind
/// (Choromanski et al. 2021, §3.2: unbiased, and of less variance than independent rows).
constexpr Node random_projection(Builder& b, std::int64_t features, std::int64_t head_dim, std::int64_t seed = 0,
                                 Where where = Where::current()) {
  NodeSpec s = rule::spec(op::random_projection, "", b, where);
  s.attributes = {integer(key::features, features), integer(key::head_dim, head_dim), integer(key::seed, seed)};
  return b.add(s, {}, infer_random_projection);
}

constexpr Outputs infer_random_features(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  const auto &x = in[0].shape, &w = in[1].shape;
  if (x.empty() || w.size() != 2)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, x.empty() ? x : w),
                      "x [..., head_dim] and a projection [features, head_dim]");
  if (x.back() != w[1]) return rule::fail(f, error_kind::wrong_width, dim_text(g, w[1]), dim_text(g, x.back()));
  std::vector<Dim> out = x;
  out.back() = w[0];
  return rule::one(out);
}

constexpr Dim flops_random_features(Graph& g, const NodeSpec& s, const Inputs& in) {
  return g.dims.times(g.dims.multiply(rule::product(g, s.outputs[0].shape), in[0].shape.back()), 2);
}

/// Exponents of positive random features: s w_f·x − s²|x|²/2 with s = head_dim^(−1/4), for every row w_f of the
/// projection [features, head_dim]. exp of it is √features · φ_f(x) (Choromanski et al. 2021, lemma 1); it is left to
/// linear attention, which knows what may be subtracted first.
constexpr Node random_features(Node x, Node projection, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  NodeSpec s = rule::spec(op::random_features, "", b, where);
  s.attributes.push_back(number(key::scale, 1 / square_root(square_root(dim ? static_cast<double>(*dim) : 1.0))));
  return b.add(s, {x, projection}, infer_random_features);
}

struct FavorOptions {
  std::int64_t features = 256;
  bool causal = false;
  std::int64_t seed = 0;  ///< of the projection
  /// Both exp(+w·x) and exp(−w·x) for each of the `features` rows w: twice the features of less variance for the same
  /// number of random rows (Choromanski et al. 2021, lemma 1, the second estimator).
  bool hyperbolic = false;
  /// [features, head_dim]; given, it takes the place of features and seed. To draw anew between runs make it an input,
  /// and fill it with reference::random_projection<float>(features, head_dim, seed).
  Node projection{};
  Node key_lengths{};  ///< i32 [batch]
  Node state{};        ///< f32 [batch, heads, features (twice if hyperbolic), value_dim + 2]; see favor_attention_from
};

/// As favor_attention below, from a state that earlier keys left (`o.state`, zeros at first).
constexpr LinearAttentionResult favor_attention_from(Node q, Node k, Node v, FavorOptions o = {},
                                                     Where where = Where::current()) {
  Builder& b = *q.builder;
  const Node none{&b, {}};
  if (!b.usable(q) || !b.usable(k) || !b.usable(v)) return {none, none};
  Node projection = o.projection;
  if (projection.builder == nullptr) {
    const auto shape = b.shape(q);
    const auto dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
    if (!dim) {
      b.fail(op::random_projection, "", {error_kind::wrong_width, "a head_dim unknown at compile time", "a number"},
             where.line());
      return {none, none};
    }
    projection = random_projection(b, o.features, *dim, o.seed, where);
  }
  // exp(−w·x) is the feature of −w.
  if (o.hyperbolic) projection = concatenate({projection, scale(projection, -1, where)}, 0, where);
  return linear_attention_from(
      random_features(q, projection, where), random_features(k, projection, where), v,
      {.causal = o.causal, .feature = activation::exp, .key_lengths = o.key_lengths, .state = o.state}, where);
}

/// softmax(q kᵀ / √head_dim) v, approximated in time linear in the length: φ(q) (φ(k)ᵀ v) over φ(q) Σ φ(k), with φ the
/// positive random features. Shapes as in attention. Each feature of the keys is kept relative to its largest exponent
/// so far, each query relative to its largest sum with those; both cancel, and nothing overflows or underflows
/// (Choromanski et al. 2021, eq. 5–7 and §3.2).
constexpr Node favor_attention(Node q, Node k, Node v, FavorOptions o = {}, Where where = Where::current()) {
  return favor_attention_from(q, k, v, o, where).out;
}

}  // namespace treadle

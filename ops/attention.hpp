#pragma once
// Softmax attention and linear attention.

#include <treadle/ops/layout.hpp>
#include <treadle/ops/linear.hpp>
#include <treadle/ops/map.hpp>
#include <treadle/ops/mask.hpp>
#include <treadle/ops/rotary.hpp>
#include <treadle/ops/scores.hpp>

#include <limits>
#include <optional>

namespace treadle {

/// Constexpr square root (Newton), for the default scale.
constexpr double square_root(double x) {
  double y = x < 1 ? 1 : x;
  for (int i = 0; i < 64; ++i) {
    const double next = 0.5 * (y + x / y);
    if (next == y) break;
    y = next;
  }
  return x <= 0 ? 0 : y;
}

/// Queries [B, H, N, D] and keys [B, Hkv, M, D] that fit: one batch, one D, Hkv divides H.
constexpr bool check_heads(Graph& g, const std::vector<Dim>& q, const std::vector<Dim>& k, Failure& f) {
  if (q[3] != k[3]) {
    rule::fail(f, error_kind::head_dim_mismatch, Text("key ").append(dim_text(g, k[3]).view()),
               Text("query ").append(dim_text(g, q[3]).view()));
    return false;
  }
  const auto heads = g.dims.constant(q[1]), kv_heads = g.dims.constant(k[1]);
  if (k[0] != q[0] || (heads && kv_heads && (*kv_heads == 0 || *heads % *kv_heads != 0))) {
    if (k[0] != q[0])
      rule::fail(f, error_kind::shape_mismatch, Text("k ").append(shape_text(g, k).view()),
                 Text("q ").append(shape_text(g, q).view()));
    else
      rule::fail(f, error_kind::heads_do_not_divide, Text().append(*kv_heads).append(" key heads"),
                 Text("a divisor of ").append(*heads));
    return false;
  }
  return true;
}

/// q [B, H, N, D], k [B, Hkv, M, D], v [B, Hkv, M, Dv].
constexpr bool check_qkv(Graph& g, const Inputs& in, Failure& f) {
  for (int i = 0; i < 3; ++i) {
    if (in[i].shape.size() != 4) {
      rule::fail(f, error_kind::wrong_rank, shape_text(g, in[i].shape), "[batch, heads, length, dim]");
      return false;
    }
  }
  const auto &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  if (q[3] == k[3] && (k[0] != q[0] || v[0] != q[0] || k[1] != v[1] || k[2] != v[2])) {
    rule::fail(f, error_kind::shape_mismatch,
               Text("k ").append(shape_text(g, k).view()).append(", v ").append(shape_text(g, v).view()),
               Text("q ").append(shape_text(g, q).view()));
    return false;
  }
  return check_heads(g, q, k, f);
}

/// What changes the scores of q = in[0] and k = in[1]: the scale, and from in[3] on mask, bias and sink.
constexpr bool check_scores(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto &q = in[0].shape, &k = in[1].shape;
  std::vector<Dim> scores = {q[0], q[1], q[2], k[2]}, both;
  if (const Attribute* scale = rule::find(s, key::scale)) {
    if (scale->number == 0 || !rule::finite(scale->number)) {
      rule::fail(f, error_kind::bad_attribute, scale->number == 0 ? "scale 0" : "a scale that is not finite",
                 "a finite scale other than 0");
      return false;
    }
  }
  std::size_t next = 3;
  if (rule::get_integer(s, key::has_mask) != 0) {
    const OutputSpec& m = in[next++];
    if (m.shape.size() != 4) {
      rule::fail(f, error_kind::wrong_mask_rank, Text("rank ").append(static_cast<std::int64_t>(m.shape.size())),
                 "rank 4");
      return false;
    }
    if (!rule::broadcast(g, m.shape, scores, both) || both != scores) {
      rule::fail(f, error_kind::shape_mismatch, shape_text(g, m.shape), shape_text(g, scores));
      return false;
    }
  }
  if (rule::get_integer(s, key::has_bias) != 0) {
    const OutputSpec& b = in[next++];
    if (!rule::broadcast(g, b.shape, scores, both) || both != scores) {
      rule::fail(f, error_kind::shape_mismatch, shape_text(g, b.shape), shape_text(g, scores));
      return false;
    }
  }
  if (rule::get_integer(s, key::has_sink) != 0) {
    const OutputSpec& sink = in[next++];
    if (sink.shape.size() != 1 || sink.shape[0] != q[1]) {
      rule::fail(f, error_kind::shape_mismatch, Text("sink ").append(shape_text(g, sink.shape).view()),
                 Text("[").append(dim_text(g, q[1]).view()).append("]"));
      return false;
    }
  }
  return true;
}

constexpr Outputs infer_attention(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (!check_qkv(g, in, f) || !check_scores(g, s, in, f)) return {};
  const auto& q = in[0].shape;
  std::vector<Dim> out = q;
  out[3] = in[2].shape[3];
  Outputs o = rule::one(out);
  o.push_back({f32, {q[0], q[1], q[2]}});
  return o;
}

/// The (query, key) pairs of one head: with a mask those that it keeps, the symbol "nonzeros:<mask node>", known at
/// bind.
constexpr Dim kept_pairs(Graph& g, const NodeSpec& s, const Inputs& in) {
  if (rule::get_integer(s, key::has_mask) == 0) return g.dims.multiply(in[0].shape[2], in[1].shape[2]);
  return g.dims.symbol(g.strings.intern(Text("nonzeros:").append(static_cast<std::int64_t>(s.inputs[3].node)).view()));
}

/// Useful: 2·D + 2·Dv for every (query, key) pair that the mask keeps.
constexpr Dim flops_attention(Graph& g, const NodeSpec& s, const Inputs& in) {
  const auto &q = in[0].shape, &v = in[2].shape;
  const Dim per_pair = g.dims.times(g.dims.add(q[3], v[3]), 2);
  return g.dims.multiply(g.dims.multiply(g.dims.multiply(q[0], q[1]), kept_pairs(g, s, in)), per_pair);
}

struct AttentionOptions {
  std::optional<Mask> mask{};
  Node mask_tensor{};                       ///< boolean, true keeps; and'ed with `mask`
  Node bias{};                              ///< f32, broadcasts to [batch, heads, q_len, k_len]; added after scaling
  Node sink{};                              ///< f32 [heads]: one logit a head that joins the denominator only
  std::optional<scalar::Function> score{};  ///< score_mod(…): applied to each score after bias, before the mask
  std::optional<double> scale{};            ///< default 1 / sqrt(head_dim)
  std::optional<double> softcap{};          ///< cap · tanh(x / cap), after bias and before `score`
  Tables tables{};                          ///< what mask and score look up, where that is no input: any nodes
};

/// softmax(scale · q kᵀ + bias, over the keys that the mask keeps) v. Shapes q [B, H, N, D], k [B, Hkv, M, D], v [B,
/// Hkv, M, Dv]; query head h uses key head ⌊h·Hkv/H⌋. A row without an allowed key gives 0 (Vaswani et al. 2017, eq.
/// 1).
constexpr Node attention(Node q, Node k, Node v, AttentionOptions o = {}, Where where = Where::current()) {
  Builder& b = *q.builder;
  if (!b.usable(q) || !b.usable(k) || !b.usable(v)) return {&b, {}};
  std::vector<Node> inputs{q, k, v};
  const auto shape = b.shape(q), keys = b.shape(k);
  NodeSpec s = rule::spec(op::attention, "", b, where);
  const auto head_dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  const bool has_mask = o.mask || o.mask_tensor.builder != nullptr;
  if (has_mask && shape.size() == 4 && keys.size() == 4) {
    inputs.push_back(
        o.mask_tensor.builder != nullptr
            ? mask_node(o.mask_tensor, ScoreLengths{shape[2], keys[2]}, o.mask ? &*o.mask : nullptr, o.tables, where)
            : mask_node(b, *o.mask, ScoreLengths{shape[2], keys[2]}, o.tables, where));
  }
  const bool has_bias = o.bias.builder != nullptr;
  if (has_bias) inputs.push_back(o.bias);
  const bool has_sink = o.sink.builder != nullptr;
  if (has_sink) inputs.push_back(o.sink);
  s.attributes = {
      number(key::scale, o.scale ? *o.scale : 1.0 / square_root(head_dim ? static_cast<double>(*head_dim) : 1.0)),
      integer(key::has_mask, inputs.size() > 3u + has_bias + has_sink), integer(key::has_bias, has_bias),
      integer(key::has_sink, has_sink)};
  if (o.softcap) {
    if (!rule::finite(*o.softcap) || *o.softcap <= 0) {
      b.fail(op::attention, "",
             {error_kind::bad_attribute, *o.softcap == 0 ? "softcap 0" : "a softcap that is negative or not finite",
              "a finite softcap above 0"},
             where.line());
      return {&b, {}};
    }
    const scalar::Function capped = softcap(*o.softcap);
    if (o.score)
      o.score = capped >> *o.score;
    else
      o.score = capped;
  }
  if (o.score) {
    const auto root = static_cast<std::int32_t>(o.score->add_to(b.graph().scalars));
    s.attributes.push_back(scalar_attribute(key::expression, root));
    if (!rule::traceable(b, op::attention, "score", where)) return {&b, {}};
    // After the other inputs.
    if (!rule::add_tables(b, root, inputs, "score", op::attention, where, o.tables)) return {&b, {}};
  }
  return b.add(s, inputs, infer_attention);
}

/// The log-sum-exp of every query's scores, f32 [B, H, N], of a node that `attention` made; −inf where a row may attend
/// to nothing. Two attentions over parts of the keys are merged with it (Dao et al. 2022, §3.1).
constexpr Node attention_logsumexp(Node out) { return {out.builder, {out.value.node, 1}}; }

constexpr Outputs infer_linear_attention(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (!check_qkv(g, in, f)) return {};
  const auto &q = in[0].shape, &v = in[2].shape;
  const bool has_state = rule::get_integer(s, key::has_state) != 0;
  const auto feature = static_cast<activation>(rule::get_integer(s, key::function));
  if (feature != activation::none && feature != activation::elu_plus_one && feature != activation::relu &&
      feature != activation::exp)
    return rule::fail(f, error_kind::bad_attribute, Text("feature ").append(name(feature)),
                      "none, elu_plus_one, relu or exp; map() for others");
  const bool exponents = feature == activation::exp;
  if (exponents) {
    // Exponentials are scaled by their maxima, which cancel in the quotient and nowhere else.
    const Attribute* eps = rule::find(s, key::eps);
    if (eps != nullptr && eps->number != 0)
      return rule::fail(f, error_kind::bad_attribute, "an eps with feature exp", "eps 0");
  }
  std::vector<Dim> out = q;
  out[3] = v[3];
  Outputs o = rule::one(out);
  if (has_state) {
    const auto& state = in.back();
    const std::vector<Dim> wanted = {q[0], q[1], q[3], g.dims.add(v[3], g.dims.number(exponents ? 2 : 1))};
    if (state.shape != wanted)
      return rule::fail(f, error_kind::shape_mismatch, Text("state ").append(shape_text(g, state.shape).view()),
                        shape_text(g, wanted));
    o.push_back({f32, wanted});
  }
  return o;
}

/// 4·D·Dv a token: φ(k)ᵀ v and φ(q) S.
constexpr Dim flops_linear_attention(Graph& g, const NodeSpec& s, const Inputs& in) {
  return g.dims.times(g.dims.multiply(rule::product(g, s.outputs[0].shape), in[0].shape[3]), 4);
}

struct LinearAttentionOptions {
  bool causal = false;
  /// elu_plus_one; relu; exp: q and k hold exponents of positive features (random_features), which are stabilised by
  /// their maxima; none: q and k hold φ(q) and φ(k), made by nodes of any kind.
  activation feature = activation::elu_plus_one;
  /// feature_map([](auto x) { … }): φ as a function of one number, in the place of `feature`.
  std::optional<scalar::Function> feature_map{};
  double eps = 0;      ///< added to the denominator
  Node key_lengths{};  ///< i32 [batch]
  /// f32 [batch, heads, head_dim, value_dim + 1], with feature exp value_dim + 2: what earlier keys left, zeros at
  /// first; see the result's state.
  Node state{};
};

/// A node, and what its keys leave for the next call.
struct LinearAttentionResult {
  Node out, state;
};

/// As linear_attention below, from a state that earlier keys left: S = Σ φ(k_j) v_jᵀ, and Σ φ(k_j) as its last column.
/// With feature exp both are relative to the exponents in one column more. `o.state` must be given. A model keeps it by
/// `append(state, result.state, 2, 0)` (Katharopoulos et al. 2020, eq. 16–20).
constexpr LinearAttentionResult linear_attention_from(Node q, Node k, Node v, LinearAttentionOptions o,
                                                      Where where = Where::current()) {
  Builder& b = *q.builder;
  if (o.feature_map) {
    q = map(q, *o.feature_map, where);
    k = map(k, *o.feature_map, where);
    o.feature = activation::none;
  }
  NodeSpec s = rule::spec(op::linear_attention, "", b, where);
  std::vector<Node> inputs{q, k, v};
  const bool lengths = o.key_lengths.builder != nullptr, state = o.state.builder != nullptr;
  if (lengths) inputs.push_back(o.key_lengths);
  if (state) inputs.push_back(o.state);
  s.attributes = {integer(key::causal, o.causal), number(key::eps, o.eps),
                  integer(key::function, static_cast<std::int64_t>(o.feature)), integer(key::has_mask, lengths)};
  if (state) s.attributes.push_back(integer(key::has_state, 1));
  const Node out = b.add(s, inputs, infer_linear_attention);
  return {out, state && out.valid() ? Node{&b, {out.value.node, 1}} : Node{&b, {}}};
}

/// φ(q_i) Σ φ(k_j) v_jᵀ / (φ(q_i)·Σ φ(k_j) + eps) over all keys, or j ≤ i if causal (Katharopoulos et al. 2020, eq.
/// 4–9). A φ that is not positive may make the denominator small or 0; a denominator of 0 gives 0.
constexpr Node linear_attention(Node q, Node k, Node v, LinearAttentionOptions o = {}, Where where = Where::current()) {
  return linear_attention_from(q, k, v, o, where).out;
}

}  // namespace treadle

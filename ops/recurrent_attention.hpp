#pragma once
// Linear attention with a state that decays or is corrected: retention, gated linear attention, the delta rule.

#include <treadle/ops/attention.hpp>
#include <treadle/ops/constant.hpp>

namespace treadle {

/// q [B, H, N, D], k [B, Hkv, N, D], v [B, Hkv, N, Dv], log_gate? broadcast to [B, H, N, D], beta? [B, H, N],
/// state? [B, H, D, Dv].
constexpr Outputs infer_recurrent_attention(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (!check_qkv(g, in, f)) return {};
  const auto &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
  if (k[2] != q[2])
    return rule::fail(f, error_kind::shape_mismatch, Text(dim_text(g, k[2]).view()).append(" keys"),
                      Text("as many as queries, ").append(dim_text(g, q[2]).view()));
  const std::vector<Dim> steps{q[0], q[1], q[2]}, state{q[0], q[1], q[3], v[3]};
  std::size_t next = 3;
  if (rule::get_integer(s, key::has_gate) != 0) {
    const OutputSpec& gate = in[next++];
    std::vector<Dim> both;
    if (gate.shape.size() != 4 || !rule::broadcast(g, gate.shape, q, both) || both != q)
      return rule::fail(f, error_kind::shape_mismatch, Text("log_gate ").append(shape_text(g, gate.shape).view()),
                        Text("rank 4 that broadcasts to ").append(shape_text(g, q).view()));
  }
  if (rule::get_integer(s, key::has_beta) != 0) {
    const OutputSpec& beta = in[next++];
    if (beta.shape != steps)
      return rule::fail(f, error_kind::shape_mismatch, Text("beta ").append(shape_text(g, beta.shape).view()),
                        shape_text(g, steps));
  }
  if (rule::get_integer(s, key::has_state) != 0) {
    const OutputSpec& before = in[next++];
    if (before.shape != state)
      return rule::fail(f, error_kind::shape_mismatch, Text("state ").append(shape_text(g, before.shape).view()),
                        shape_text(g, state));
  }
  std::vector<Dim> out = q;
  out[3] = v[3];
  Outputs o = rule::one(out);
  o.push_back({f32, state});
  return o;
}

/// 4·D·Dv a token, k uᵀ and Sᵀ q; D·Dv more for a gate, 2·D·Dv more for the delta rule's Sᵀ k.
constexpr Dim flops_recurrent_attention(Graph& g, const NodeSpec& s, const Inputs& in) {
  const std::int64_t each =
      4 + (rule::get_integer(s, key::has_gate) != 0 ? 1 : 0) + (rule::get_integer(s, key::has_beta) != 0 ? 2 : 0);
  return g.dims.times(g.dims.multiply(rule::product(g, s.outputs[0].shape), in[0].shape[3]), each);
}

struct RecurrentOptions {
  Node log_gate{};  ///< f32, broadcasts to [B, H, N, D]: per head, per step, per channel, or any of these; usually ≤ 0
  Node beta{};      ///< f32 [B, H, N], usually in [0, 1]: the delta rule
  Node state{};     ///< f32 [B, H, D, Dv]: what earlier tokens left; zeros without it
  std::optional<double> scale{};  ///< default 1 / √D
};

/// The outputs, and what the tokens leave for the next call. Where a node is wanted it is the outputs.
struct RecurrentResult {
  Node out, state;
  constexpr operator Node() const { return out; }
};

/// For t = 1 … N, from S = `state` or 0:
///
///   S ← diag(exp log_gate_t) S
///   S ← S + k_t u_tᵀ,  u_t = v_t, or with beta u_t = β_t (v_t − Sᵀ k_t)
///   out_t = scale · Sᵀ q_t
///
/// q [B, H, N, D], k [B, Hkv, N, D], v [B, Hkv, N, Dv]; query head h uses key head ⌊h·Hkv/H⌋. Computed in chunks or
/// token by token, by the length (`explain` shows which); states are float32. A model keeps its state by
/// `append(state, result.state, 2, 0)`. Source: see the four functions below.
constexpr RecurrentResult recurrent_attention(Node q, Node k, Node v, RecurrentOptions o = {},
                                              Where where = Where::current()) {
  Builder& b = *q.builder;
  const Node none{&b, {}};
  if (!b.usable(q) || !b.usable(k) || !b.usable(v)) return {none, none};
  std::vector<Node> inputs{q, k, v};
  const bool gate = o.log_gate.builder != nullptr, beta = o.beta.builder != nullptr, state = o.state.builder != nullptr;
  if (gate) inputs.push_back(o.log_gate);
  if (beta) inputs.push_back(o.beta);
  if (state) inputs.push_back(o.state);
  const auto shape = b.shape(q);
  const auto dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  NodeSpec s = rule::spec(op::recurrent_attention, "", b, where);
  s.attributes = {number(key::scale, o.scale ? *o.scale : 1.0 / square_root(dim ? static_cast<double>(*dim) : 1.0)),
                  integer(key::has_gate, gate), integer(key::has_beta, beta), integer(key::has_state, state)};
  const Node out = b.add(s, inputs, infer_recurrent_attention);
  return {out, out.valid() ? Node{&b, {out.value.node, 1}} : none};
}

/// Constexpr natural logarithm of x > 0: x = m · 2ᵉ with m in [√½, √2), log m = 2 artanh((m − 1) / (m + 1)).
constexpr double natural_log(double x) {
  constexpr double ln2 = 0.693147180559945309417;
  int e = 0;
  while (x > 1.41421356237309505) x /= 2, ++e;
  while (x < 0.70710678118654752) x *= 2, --e;
  const double t = (x - 1) / (x + 1), t2 = t * t;
  double power = t, sum = 0;
  for (int n = 1; n < 60; n += 2) {
    sum += power / n;
    power *= t2;
  }
  return 2 * sum + e * ln2;
}

/// RetNet's decays, 1 − 2^(−5−h) for head h (Sun et al. 2023, eq. 8).
constexpr std::vector<double> retention_decays(std::int64_t heads) {
  std::vector<double> d;
  double power = 1.0 / 32;
  for (std::int64_t h = 0; h < heads; ++h) {
    d.push_back(1 - power);
    power /= 2;
  }
  return d;
}

struct RetentionOptions {
  std::vector<double> decays{};   ///< one a head, in (0, 1]; none: retention_decays
  std::optional<double> scale{};  ///< default 1 / √D
  Node state{};                   ///< as in recurrent_attention
};

/// out_i = scale · Σ_(j ≤ i) γ_h^(i−j) (q_i · k_j) v_j: retention without rotation, norm and gate (Sun et al. 2023, eq.
/// 5 to 7); `retention_layer` has them. No 1/√N or other normalisation of the rows: a norm behind takes its place.
constexpr RecurrentResult retention(Node q, Node k, Node v, RetentionOptions o = {}, Where where = Where::current()) {
  Builder& b = *q.builder;
  const Node none{&b, {}};
  if (!b.usable(q)) return {none, none};
  const auto shape = b.shape(q);
  const auto heads = shape.size() == 4 ? b.graph().dims.constant(shape[1]) : std::nullopt;
  if (!heads) {
    b.fail(op::recurrent_attention, "",
           {error_kind::wrong_rank, shape_text(b.graph(), shape), "[batch, a number of heads, length, dim]"},
           where.line());
    return {none, none};
  }
  if (o.decays.empty()) o.decays = retention_decays(*heads);
  bool fit = static_cast<std::int64_t>(o.decays.size()) == *heads;
  std::vector<double> logs;
  for (double d : o.decays) {
    fit = fit && d > 0 && d <= 1;
    logs.push_back(fit ? natural_log(d) : 0);
  }
  if (!fit) {
    b.fail(op::recurrent_attention, "",
           {error_kind::bad_attribute, Text().append(static_cast<std::int64_t>(o.decays.size())).append(" decays"),
            Text("one in (0, 1] for each of ").append(*heads).append(" heads")},
           where.line());
    return {none, none};
  }
  const Node gate = constant(b, {1, *heads, 1, 1}, logs, f32, where);
  return recurrent_attention(q, k, v, {.log_gate = gate, .state = o.state, .scale = o.scale}, where);
}

/// S_t = diag(exp log_gate_t) S_(t−1) + k_t v_tᵀ, out_t = scale · S_tᵀ q_t (Yang et al. 2024, Gated Linear Attention
/// Transformers, §4).
constexpr RecurrentResult gated_linear_attention(Node q, Node k, Node v, Node log_gate, RecurrentOptions o = {},
                                                 Where where = Where::current()) {
  o.log_gate = log_gate;
  return recurrent_attention(q, k, v, o, where);
}

/// S_t = S_(t−1) + β_t k_t (v_t − S_(t−1)ᵀ k_t)ᵀ: the value stored for k_t moves by β_t towards v_t (Schlag et al.
/// 2021, §4.2; Yang et al. 2024, Parallelizing Linear Transformers with the Delta Rule, §2). Keys of length 1 keep it
/// stable.
constexpr RecurrentResult delta_rule(Node q, Node k, Node v, Node beta, RecurrentOptions o = {},
                                     Where where = Where::current()) {
  o.beta = beta;
  return recurrent_attention(q, k, v, o, where);
}

/// S_t = α_t (I − β_t k_t k_tᵀ) S_(t−1) + β_t k_t v_tᵀ with α = exp log_gate (Yang et al. 2025, Gated Delta Networks,
/// §3); a gate per channel decays before the correction (Kimi Linear, 2025).
constexpr RecurrentResult gated_delta_rule(Node q, Node k, Node v, Node log_gate, Node beta, RecurrentOptions o = {},
                                           Where where = Where::current()) {
  o.log_gate = log_gate;
  o.beta = beta;
  return recurrent_attention(q, k, v, o, where);
}

}  // namespace treadle

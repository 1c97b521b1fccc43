#pragma once
// Layers around recurrent_attention: multi-scale retention, gated linear attention, gated delta rule.

#include <treadle/ops/norm.hpp>
#include <treadle/ops/recurrent_attention.hpp>

namespace treadle {

/// What normalises each head's output: nothing, mean and variance (the paper's group norm), or the mean square.
enum class head_norm : std::uint8_t { none, layer, rms };

namespace rule {
/// The width of x [B, N, W], or nothing and a mistake recorded.
constexpr std::optional<std::int64_t> sequence_width(Node x, std::string_view leaf, std::int64_t heads,
                                                     const Where& where) {
  Builder& b = *x.builder;
  const auto shape = b.shape(x);
  const auto width = shape.size() == 3 ? b.graph().dims.constant(shape[2]) : std::nullopt;
  if (!width)
    b.fail(op::recurrent_attention, leaf,
           {error_kind::wrong_rank, shape_text(b.graph(), shape), "[batch, length, a number]"}, where.line());
  else if (heads < 1 || *width % heads != 0)
    b.fail(op::recurrent_attention, leaf,
           {error_kind::heads_do_not_divide_width, Text().append(heads).append(" heads"),
            Text("a divisor of width ").append(*width)},
           where.line());
  else
    return width;
  return std::nullopt;
}

constexpr Node heads_of(std::string_view leaf, Node x, std::int64_t heads, std::int64_t dim, bool bias,
                        const Where& where) {
  return split_heads(linear(leaf, x, {.width = heads * dim, .bias = bias}, where), heads, "", where);
}

/// log σ(z) / temperature, by log σ(z) = −softplus(−z).
constexpr Node log_sigmoid_gate(Node z, double temperature, const Where& where) {
  return scale(softplus(scale(z, -1, where), where), -1 / temperature, where);
}

/// Norm of each head, output gate silu(x Wg), output projection.
constexpr Node recurrent_output(Node x, Node heads_out, std::int64_t width, std::int64_t inner, head_norm norm_kind,
                                bool gain, double eps, bool gate, const Where& where) {
  Node y = heads_out;
  if (norm_kind == head_norm::layer) y = layer_norm("norm", y, {.eps = eps, .weight = gain, .bias = false}, where);
  if (norm_kind == head_norm::rms) y = rms_norm("norm", y, {.eps = eps, .weight = gain}, where);
  y = merge_heads(y, where);
  if (gate) y = multiply(silu(linear("g", x, {.width = inner, .bias = false}, where), where), y, where);
  return linear("out", y, {.width = width, .bias = false}, where);
}
}  // namespace rule

struct RetentionLayerOptions {
  std::int64_t heads = 1;
  std::int64_t key_dim = 0;           ///< of a head; 0: width / heads
  std::int64_t value_dim = 0;         ///< of a head; 0: twice key_dim, as in the paper
  std::optional<RopeOptions> rope{};  ///< rotary positions of q and k, the paper's complex decay; none: no rotation
  std::vector<double> decays{};       ///< as in retention
  head_norm norm = head_norm::layer;  ///< of each head's output, without it rows grow with their position
  bool gain = false;                  ///< norm.weight [value_dim], shared by the heads
  double eps = 1e-6;                  ///< of the norm
  bool gate = true;                   ///< silu(x W_g) ∘ the normalised heads
  Node state{};                       ///< as in recurrent_attention
};

/// Multi-scale retention (Sun et al. 2023, eq. 8): q, k, v, g and out projections without biases, retention with a
/// decay for each head, group norm, swish gate. x [B, N, W] → [B, N, W]. With a state give `rope`.offset the rows so
/// far.
constexpr RecurrentResult retention_layer(std::string_view leaf, Node x, RetentionLayerOptions o = {},
                                          Where where = Where::current()) {
  Builder& b = *x.builder;
  const Node none{&b, {}};
  if (!b.usable(x)) return {none, none};
  const auto width = rule::sequence_width(x, leaf, o.heads, where);
  if (!width) return {none, none};
  const std::int64_t dim = o.key_dim == 0 ? *width / o.heads : o.key_dim,
                     values = o.value_dim == 0 ? 2 * dim : o.value_dim;
  b.push_scope(leaf);
  Node q = rule::heads_of("q", x, o.heads, dim, false, where), k = rule::heads_of("k", x, o.heads, dim, false, where);
  const Node v = rule::heads_of("v", x, o.heads, values, false, where);
  if (o.rope) {
    q = rope(q, *o.rope, where);
    k = rope(k, *o.rope, where);
  }
  RetentionOptions options;  // filled in by hand: g++ 12 loses a vector that is made inside braces
  options.decays = o.decays;
  options.state = o.state;
  const RecurrentResult r = retention(q, k, v, options, where);
  const Node y = rule::recurrent_output(x, r.out, *width, o.heads * values, o.norm, o.gain, o.eps, o.gate, where);
  b.pop_scope();
  return {y, r.state};
}

struct GatedLinearLayerOptions {
  std::int64_t heads = 1;
  std::int64_t key_dim = 0;     ///< of a head; 0: half of width / heads, as in the paper
  std::int64_t value_dim = 0;   ///< of a head; 0: width / heads
  std::int64_t gate_rank = 16;  ///< of the gate's projection
  double temperature = 16;      ///< log gate = log σ(x W₁ W₂ + b) / temperature: nearer to 0, so slower to forget
  head_norm norm = head_norm::rms;
  bool gain = true;  ///< norm.weight [value_dim], shared by the heads
  double eps = 1e-5;
  bool gate = true;  ///< silu(x W_g) ∘ the normalised heads
  Node state{};      ///< as in recurrent_attention
};

/// Gated linear attention (Yang et al. 2024, §4.4): a gate for each channel of the keys from a projection of low rank
/// (gate_down, gate_up). x [B, N, W] → [B, N, W].
constexpr RecurrentResult gated_linear_layer(std::string_view leaf, Node x, GatedLinearLayerOptions o = {},
                                             Where where = Where::current()) {
  Builder& b = *x.builder;
  const Node none{&b, {}};
  if (!b.usable(x)) return {none, none};
  const auto width = rule::sequence_width(x, leaf, o.heads, where);
  if (!width) return {none, none};
  const std::int64_t values = o.value_dim == 0 ? *width / o.heads : o.value_dim,
                     dim = o.key_dim == 0 ? (*width / o.heads + 1) / 2 : o.key_dim;
  if (o.gate_rank < 1 || !(o.temperature > 0)) {
    b.fail(op::recurrent_attention, leaf,
           {error_kind::bad_attribute, "a gate_rank below 1 or a temperature not above 0", "16 and 16, for example"},
           where.line());
    return {none, none};
  }
  b.push_scope(leaf);
  const Node q = rule::heads_of("q", x, o.heads, dim, false, where),
             k = rule::heads_of("k", x, o.heads, dim, false, where),
             v = rule::heads_of("v", x, o.heads, values, false, where);
  const Node down = linear("gate_down", x, {.width = o.gate_rank, .bias = false}, where);
  const Node raw = rule::heads_of("gate_up", down, o.heads, dim, true, where);
  const Node log_gate = rule::log_sigmoid_gate(raw, o.temperature, where);
  const RecurrentResult r = gated_linear_attention(q, k, v, log_gate, {.state = o.state}, where);
  const Node y = rule::recurrent_output(x, r.out, *width, o.heads * values, o.norm, o.gain, o.eps, o.gate, where);
  b.pop_scope();
  return {y, r.state};
}

struct GatedDeltaLayerOptions {
  std::int64_t heads = 1;
  std::int64_t key_dim = 0;    ///< of a head; 0: width / heads
  std::int64_t value_dim = 0;  ///< of a head; 0: width / heads
  bool decay = true;           ///< the gate; false: the plain delta rule (DeltaNet)
  bool l2_norm = true;         ///< queries and keys of length 1, after silu
  head_norm norm = head_norm::rms;
  bool gain = true;  ///< norm.weight [value_dim], shared by the heads
  double eps = 1e-5;
  bool gate = true;  ///< silu(x W_g) ∘ the normalised heads
  Node state{};      ///< as in recurrent_attention
};

/// Rows of length 1: x / √(Σ x² + eps).
constexpr Node l2_norm(Node x, double eps = 1e-6, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto width = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  if (!width || *width < 1) {
    b.fail(op::rms_norm, "", {error_kind::wrong_width, "a width unknown at compile time", "a number"}, where.line());
    return {&b, {}};
  }
  const auto n = static_cast<double>(*width);
  return scale(rms_norm("", x, {.eps = eps / n, .weight = false}, where), 1 / square_root(n), where);
}

/// Gated delta rule (Yang et al. 2025, Gated Delta Networks, §3.4): q, k = silu of their projections, of length 1;
/// β = σ(x W_β); log gate = −exp(a) · softplus(x W_α + b_α) for each head (parameters `decay.rate` = a, `alpha`). x [B,
/// N, W] → [B, N, W]. The short convolutions of the paper are not part of it.
constexpr RecurrentResult gated_delta_layer(std::string_view leaf, Node x, GatedDeltaLayerOptions o = {},
                                            Where where = Where::current()) {
  Builder& b = *x.builder;
  const Node none{&b, {}};
  if (!b.usable(x)) return {none, none};
  const auto width = rule::sequence_width(x, leaf, o.heads, where);
  if (!width) return {none, none};
  const std::int64_t dim = o.key_dim == 0 ? *width / o.heads : o.key_dim,
                     values = o.value_dim == 0 ? *width / o.heads : o.value_dim;
  b.push_scope(leaf);
  const auto unit = [&](std::string_view name) {
    const Node y = silu(rule::heads_of(name, x, o.heads, dim, false, where), where);
    if (o.l2_norm) return l2_norm(y, 1e-6, where);
    return y;
  };
  const Node q = unit("q"), k = unit("k"), v = rule::heads_of("v", x, o.heads, values, false, where);
  const Node beta = transpose(sigmoid(linear("beta", x, {.width = o.heads, .bias = false}, where), where), where);
  RecurrentOptions options{.beta = beta, .state = o.state};
  if (o.decay) {
    const Node rate = exp(b.parameter("decay.rate", {b.dim_number(o.heads)}, where), where);
    const Node speed = softplus(linear("alpha", x, {.width = o.heads}, where), where);
    options.log_gate = split_heads(scale(multiply(speed, rate, where), -1, where), o.heads, "", where);
  }
  const RecurrentResult r = recurrent_attention(q, k, v, options, where);
  const Node y = rule::recurrent_output(x, r.out, *width, o.heads * values, o.norm, o.gain, o.eps, o.gate, where);
  b.pop_scope();
  return {y, r.state};
}

}  // namespace treadle

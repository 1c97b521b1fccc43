#pragma once
// Queries and keys normalised, head by head, before their product.

#include <treadle/ops/elementwise.hpp>
#include <treadle/ops/norm.hpp>

#include <optional>

namespace treadle {

enum class qk_norm_kind : std::uint8_t {
  rms,    ///< RMS norm with a gain (Gemma 3, Qwen3)
  layer,  ///< layer norm with a gain, no bias (Dehghani et al. 2023, §3)
  l2,     ///< length 1, and one learned scale in place of 1/√head_dim (Henry et al. 2020, eq. 4)
};

struct QkNormOptions {
  qk_norm_kind kind = qk_norm_kind::rms;
  double eps = 1e-6;
};

struct NormalisedHeads {
  Node q, k;
  std::optional<double> scale{};  ///< of q·k, if the norm brings its own
};

/// q and k [batch, heads, length, head_dim] normalised over head_dim; the gains q_norm.weight and k_norm.weight
/// [head_dim] serve every head. With l2, q·k is the cosine times the parameter qk_scale [1], and `scale` says so; eps
/// then counts beside the mean square. Comes before rotary positions, which keep lengths.
constexpr NormalisedHeads qk_norm(Node q, Node k, QkNormOptions o = {}, Where where = Where::current()) {
  Builder& b = *q.builder;
  if (o.kind == qk_norm_kind::rms)
    return {rms_norm("q_norm", q, {.eps = o.eps}, where), rms_norm("k_norm", k, {.eps = o.eps}, where)};
  if (o.kind == qk_norm_kind::layer)
    return {layer_norm("q_norm", q, {.eps = o.eps, .bias = false}, where),
            layer_norm("k_norm", k, {.eps = o.eps, .bias = false}, where)};
  const auto shape = b.shape(q);
  const auto head_dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  const Node scale = b.parameter("qk_scale", {b.dim_number(1)}, where);
  // x / sqrt(mean(x²)) has length sqrt(head_dim).
  const Node long_q = rms_norm("q_norm", q, {.eps = o.eps, .weight = false}, where),
             long_k = rms_norm("k_norm", k, {.eps = o.eps, .weight = false}, where);
  NormalisedHeads r{multiply(long_q, scale, where), long_k};
  r.scale = 1.0 / static_cast<double>(head_dim ? *head_dim : 1);
  return r;
}

}  // namespace treadle

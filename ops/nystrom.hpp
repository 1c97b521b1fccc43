#pragma once
// Nyström attention: softmax through landmarks (Xiong et al. 2021, Nyströmformer).

#include <treadle/ops/partial_attention.hpp>
#include <treadle/ops/pool.hpp>

namespace treadle {

/// The Moore-Penrose inverse of each matrix a [.., m, n] → [.., n, m], by the iteration of Razavi et al. 2014 that
/// Nyströmformer uses: Z ← ¼ Z (13 I − AZ (15 I − AZ (7 I − AZ))), from Z = Aᵀ / (‖A‖₁ ‖A‖∞) (Xiong et al. 2021, §3.3).
/// The start is that of each matrix: it does not depend on other heads or batch elements. For matrices with rows that
/// sum to 1, such as softmax gives, so that ‖A‖∞ = 1. Cubic convergence once ‖I − AZ‖ < 1; far from singular matrices 6
/// iterations reach float32, near ones they give a smoothed inverse.
constexpr Node stochastic_pseudo_inverse(Node a, std::int64_t iterations = 6, Where where = Where::current()) {
  Builder& b = *a.builder;
  if (!b.usable(a)) return {&b, {}};
  const std::vector<Dim> shape = b.shape(a);
  if (shape.size() < 2 || iterations < 0) {
    Failure f{error_kind::wrong_rank, shape_text(b.graph(), shape), "[..., m, n]"};
    if (iterations < 0)
      f = {error_kind::bad_attribute, Text().append(iterations).append(" iterations"), "0 or more iterations"};
    b.fail(op::matmul, "pseudo_inverse", f, where.line());
    return {&b, {}};
  }
  // ‖A‖₁: the largest column sum. 1/x is exp(−log x), and x is above 0: m rows share a sum of m in n columns.
  std::vector<Dim> row = shape, column = shape, one = shape;
  row[shape.size() - 2] = b.dim_number(1);
  column.back() = b.dim_number(1);
  column[shape.size() - 2] = shape.back();
  one[shape.size() - 2] = one.back() = b.dim_number(1);
  std::vector<Dim> ones{b.dim_number(1), shape[shape.size() - 2]};
  const Node sums = matmul(full_of(b, ones, 1, f32, where), a, where);
  const Node norm = reshape_to(max_pooling(reshape_to(sums, column, where), {}, where), one, where);
  Node z = transpose(a, where) * exp(scale(log(norm, where), -1, where), where);
  for (std::int64_t i = 0; i < iterations; ++i) {
    const Node p = matmul(a, z, where);
    const Node inner = scale(p, 7, where) + scale(matmul(p, p, where), -1, where);
    const Node outer = scale(p, 15, where) + scale(matmul(p, inner, where), -1, where);
    z = scale(z, 13.0 / 4, where) + scale(matmul(z, outer, where), -1.0 / 4, where);
  }
  return z;
}

struct NystromOptions {
  std::int64_t landmarks = 64;    ///< at most; the paper's m
  std::int64_t iterations = 6;    ///< of the pseudo-inverse
  std::optional<double> scale{};  ///< default 1 / sqrt(head_dim)
};

/// softmax(s q k̃ᵀ) pinv(softmax(s q̃ k̃ᵀ)) (softmax(s q̃ kᵀ) v), where q̃ and k̃ are means over segments (Xiong et al. 2021,
/// eq. 14; without the depthwise convolution that its models add to the result). Shapes as in attention, with as many
/// key heads as query heads. Segments have ⌈N / landmarks⌉ tokens, the last what is left (the paper pads instead), so
/// that there are ⌈N / ⌈N / landmarks⌉⌉ landmarks; queries and keys have theirs each. Every output depends on all
/// tokens: there is no causal form and no mask. Costs 2 (N + M)·landmarks pairs and a few products of landmarks³;
/// memory is linear in N + M.
constexpr Node nystrom_attention(Node q, Node k, Node v, NystromOptions o = {}, Where where = Where::current()) {
  Builder& b = *q.builder;
  constexpr std::string_view leaf = "nystrom_attention";
  if (!rule::fits_attention(b, q, k, v, leaf, where) || !rule::equal_heads(b, q, k, leaf, where)) return {&b, {}};
  if (o.landmarks < 1) {
    b.fail(op::attention, leaf,
           {error_kind::bad_attribute, Text().append(o.landmarks).append(" landmarks"), "at least 1 landmark"},
           where.line());
    return {&b, {}};
  }
  Graph& g = b.graph();
  const auto means = [&](Node x) {
    const Dim each = g.dims.ceil_div(b.shape(x)[2], g.dims.number(o.landmarks));
    return rule::pooled_runs(x, each, reduction::mean, where);
  };
  const auto head_dim = g.dims.constant(b.shape(q)[3]);
  AttentionOptions a;
  a.scale = o.scale ? *o.scale : 1.0 / square_root(head_dim ? static_cast<double>(*head_dim) : 1.0);
  const Node q_marks = means(q), k_marks = means(k);
  const Node between = softmax(scale(matmul(q_marks, transpose(k_marks, where), where), *a.scale, where), where);
  const Node inverse = stochastic_pseudo_inverse(between, o.iterations, where);
  const Node collected = attention(q_marks, k, v, a, where);
  if (!b.usable(inverse) || !b.usable(collected)) return {&b, {}};
  return attention(q, k_marks, matmul(inverse, collected, where), a, where);
}

}  // namespace treadle

#pragma once
// Attention over parts of the keys, put together again.

#include <treadle/ops/attention.hpp>
#include <treadle/ops/constant.hpp>
#include <treadle/ops/reshape.hpp>
#include <treadle/ops/softmax.hpp>

#include <initializer_list>

namespace treadle {
namespace rule {

/// Whether q, k and v fit attention; the first thing that does not is reported for `leaf`.
constexpr bool fits_attention(Builder& b, Node q, Node k, Node v, std::string_view leaf, const Where& where) {
  if (!b.usable(q) || !b.usable(k) || !b.usable(v)) return false;
  Inputs in;
  for (const Node& x : {q, k, v}) {
    OutputSpec o;
    o.dtype = b.dtype(x);
    o.shape = b.shape(x);
    in.push_back(o);
  }
  Failure f;
  if (check_qkv(b.graph(), in, f)) return true;
  b.fail(op::attention, leaf, f, where.line());
  return false;
}

/// Whether there are as many key heads as query heads; else the mistake is reported.
constexpr bool equal_heads(Builder& b, Node q, Node k, std::string_view leaf, const Where& where) {
  const auto of_q = b.shape(q), of_k = b.shape(k);
  if (of_q[1] == of_k[1]) return true;
  b.fail(
      op::attention, leaf,
      {error_kind::heads_do_not_divide,
       Text(dim_text(b.graph(), of_k[1]).view()).append(" key heads for ").append(dim_text(b.graph(), of_q[1]).view()),
       "a key head for each query head"},
      where.line());
  return false;
}

/// Whether queries and keys are of one sequence; else the mistake is reported.
constexpr bool equal_lengths(Builder& b, Node q, Node k, std::string_view leaf, const Where& where) {
  const auto of_q = b.shape(q), of_k = b.shape(k);
  if (of_q[2] == of_k[2]) return true;
  b.fail(op::attention, leaf,
         {error_kind::shape_mismatch, Text(dim_text(b.graph(), of_k[2]).view()).append(" keys"),
          Text("as many as queries: ").append(dim_text(b.graph(), of_q[2]).view())},
         where.line());
  return false;
}

}  // namespace rule

/// What attention over some of the keys gives: out [B, H, N, Dv], and the log-sum-exp of its scores [B, H, N].
struct AttentionPart {
  Node out, logsumexp;
};

/// Both results of a node that `attention` made.
constexpr AttentionPart part_of(Node attention) { return {attention, attention_logsumexp(attention)}; }

/// One softmax over the keys of all parts, from their results: Σ_p w_p out_p with w = softmax_p(logsumexp_p). What an
/// attention over all keys at once would give, if no key is in two parts (Dao et al. 2022, §3.1; Rabe and Staats 2021).
/// A part that sees nothing (−inf) weighs 0; a row that no part has a key for gives 0.
constexpr Node merge_attention(std::initializer_list<AttentionPart> parts, Where where = Where::current()) {
  Builder& b = *parts.begin()->out.builder;
  std::vector<Node> sums;
  for (const AttentionPart& p : parts) {
    if (!b.usable(p.out) || !b.usable(p.logsumexp)) return {&b, {}};
    std::vector<Dim> column = b.shape(p.logsumexp);
    column.push_back(b.dim_number(1));
    sums.push_back(reshape_to(p.logsumexp, column, where));
  }
  const auto axis = static_cast<std::int64_t>(b.shape(sums[0]).size()) - 1;
  const Node weights = softmax(concatenate(sums, axis, where), where);
  Node total{&b, {}};
  std::int64_t i = 0;
  for (const AttentionPart& p : parts) {
    const Node share = p.out * slice(weights, axis, i, 1, where);
    if (i == 0)
      total = share;
    else
      total = total + share;
    ++i;
  }
  return total;
}

}  // namespace treadle

#pragma once
// Rotary positions (Su et al. 2021).

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_rope(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto& x = in[0].shape;
  if (x.size() != 4) return rule::fail(f, error_kind::wrong_rank, shape_text(g, x), "[batch, heads, length, head_dim]");
  const std::int64_t rotary = rule::get_integer(s, key::rotary_dim);
  const auto head_dim = g.dims.constant(x[3]);
  if (rotary < 2 || rotary % 2 != 0 || !head_dim || rotary > *head_dim) {
    Text expected("an even number");
    if (head_dim) expected.append(" from 2 to head_dim ").append(*head_dim);
    return rule::fail(f, error_kind::bad_attribute, Text("rotary_dim ").append(rotary), expected);
  }
  if (rule::get_integer(s, key::has_positions) != 0) {
    const OutputSpec& p = in[1];
    if (p.dtype != i32 && p.dtype != i64)
      return rule::fail(f, error_kind::wrong_dtype, name(p.dtype), "i32 or i64 positions");
    const bool shared = p.shape.size() == 1 && p.shape[0] == x[2];
    const bool own = p.shape.size() == 2 && p.shape[0] == x[0] && p.shape[1] == x[2];
    if (!shared && !own)
      return rule::fail(f, error_kind::shape_mismatch, Text("positions ").append(shape_text(g, p.shape).view()),
                        "[length] or [batch, length] of x");
  }
  return rule::one(x);
}

/// Four multiplications and two additions a pair.
constexpr Dim flops_rope(Graph& g, const NodeSpec& s, const Inputs& in) {
  const auto& x = in[0].shape;
  return g.dims.times(g.dims.multiply(g.dims.multiply(x[0], x[1]), x[2]), 3 * rule::get_integer(s, key::rotary_dim));
}

struct RopeOptions {
  double base = 10000;
  rope_layout layout = rope_layout::half;
  DimSpec offset = 0;           ///< position of the first row: with a cache, the rows that it holds
  std::int64_t rotary_dim = 0;  ///< the first channels, which rotate (even); 0: all
  Node positions{};             ///< i32 or i64 [length] or [batch, length]; added to the offset
};

/// Turns pair i of a row at position p by p · base^(−2i/rotary_dim): (a, b) → (a cos − b sin, a sin + b cos). A pair is
/// (i, i + rotary_dim/2) in layout half, (2i, 2i + 1) interleaved. x [batch, heads, length, head_dim]; channels from
/// rotary_dim on stay as they are. Angles are made in double, so that late positions keep their digits (Su et al. 2021,
/// eq. 34).
constexpr Node rope(Node x, RopeOptions o = {}, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  const auto shape = b.shape(x);
  const auto head_dim = shape.empty() ? std::nullopt : b.graph().dims.constant(shape.back());
  NodeSpec s = rule::spec(op::rope, "", b, where);
  std::vector<Node> inputs{x};
  const bool positions = o.positions.builder != nullptr;
  if (positions) inputs.push_back(o.positions);
  s.attributes = {number(key::base, o.base), integer(key::layout, static_cast<std::int64_t>(o.layout)),
                  dim_attribute(key::offset, b.intern(o.offset)),
                  integer(key::rotary_dim, o.rotary_dim != 0 ? o.rotary_dim
                                           : head_dim        ? *head_dim
                                                             : 0),
                  integer(key::has_positions, positions)};
  return b.add(s, inputs, infer_rope);
}

}  // namespace treadle

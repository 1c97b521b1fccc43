#pragma once
// Token embedding, learned and sinusoidal positions.

#include <treadle/ops/elementwise.hpp>

namespace treadle {

constexpr Outputs infer_embedding(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].shape.size() != 2)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, in[0].shape), "a table [vocabulary, width]");
  if (in[1].dtype != i32 && in[1].dtype != i64)
    return rule::fail(f, error_kind::wrong_dtype, name(in[1].dtype), "i32 or i64 ids");
  std::vector<Dim> out = in[1].shape;
  out.push_back(in[0].shape[1]);
  return rule::one(out);
}

/// (table, ids, rows, gamma?, beta?): rows [length, width] broadcasts over the leading dims of the embeddings, or has
/// their shape.
constexpr Outputs infer_embedding_sum(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  Outputs out = infer_embedding(g, s, in, f);
  if (f) return out;
  const auto &shape = out[0].shape, &rows = in[2].shape;
  bool fits = rows.size() >= 2 && rows.size() <= shape.size();
  for (std::size_t i = 0; fits && i < rows.size(); ++i) fits = rows[rows.size() - 1 - i] == shape[shape.size() - 1 - i];
  if (!fits) return rule::fail(f, error_kind::shape_mismatch, shape_text(g, rows), shape_text(g, shape));
  for (std::size_t i = 3; i < in.size(); ++i)
    if (in[i].shape.size() != 1 || in[i].shape[0] != shape.back())
      return rule::fail(f, error_kind::wrong_width, shape_text(g, in[i].shape),
                        Text("[").append(dim_text(g, shape.back()).view()).append("]"));
  return out;
}

constexpr Dim flops_embedding_sum(Graph& g, const NodeSpec& s, const Inputs&) {
  return g.dims.times(rule::product(g, s.outputs[0].shape), rule::get_integer(s, key::normalise) != 0 ? 9 : 1);
}

struct EmbeddingOptions {
  std::int64_t vocabulary = 0, width = 0;
};

/// Rows of `leaf`.weight [vocabulary, width] by id.
constexpr Node embedding(std::string_view leaf, Node ids, EmbeddingOptions o, Where where = Where::current()) {
  Builder& b = *ids.builder;
  if (!b.usable(ids)) return {&b, {}};
  const Node table =
      b.parameter(Text(leaf).append(".weight").view(), {b.dim_number(o.vocabulary), b.dim_number(o.width)}, where);
  return b.add(rule::spec(op::embedding, leaf, b, where), {table, ids}, infer_embedding);
}

/// Rows of a table that exists already (tied weights).
constexpr Node embedding_with(Node table, Node ids, Where where = Where::current()) {
  return ids.builder->add(rule::spec(op::embedding, "", *ids.builder, where), {table, ids}, infer_embedding);
}

constexpr Outputs infer_positions(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  if (in[0].shape.size() != 2)
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, in[0].shape), "a table [length, width]");
  const auto length = static_cast<Dim>(rule::get_integer(s, key::length)),
             offset = static_cast<Dim>(rule::get_integer(s, key::offset));
  const auto end = g.dims.constant(g.dims.add(offset, length)), have = g.dims.constant(in[0].shape[0]);
  if (end && have && *end > *have)
    return rule::fail(f, error_kind::shape_mismatch, Text().append(*end).append(" positions"),
                      Text("at most ").append(*have));
  std::vector<Dim> out;
  out.push_back(length);
  out.push_back(in[0].shape[1]);
  return rule::one(out);
}

struct LearnedPositionsOptions {
  std::int64_t length = 0;  ///< rows of the table: the longest sequence
  DimSpec offset = 0;       ///< position of the first token
};

/// A request, completed by what it is added to: `embedding(…) + learned_positions("wpe", {.length = 1024})`.
struct LearnedPositions {
  std::string_view leaf;
  LearnedPositionsOptions options;
  Where where;
};
constexpr LearnedPositions learned_positions(std::string_view leaf, LearnedPositionsOptions o,
                                             Where where = Where::current()) {
  return {leaf, o, where};
}
constexpr Node operator+(Node x, const LearnedPositions& p) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return x;
  const auto shape = b.shape(x);
  if (shape.size() < 2) {
    b.fail(op::positions, p.leaf, {error_kind::wrong_rank, shape_text(b.graph(), shape), "[..., length, width]"},
           p.where.line());
    return {&b, {}};
  }
  const Node table =
      b.parameter(Text(p.leaf).append(".weight").view(), {b.dim_number(p.options.length), shape.back()}, p.where);
  NodeSpec s = rule::spec(op::positions, p.leaf, b, p.where);
  s.attributes = {dim_attribute(key::offset, b.intern(p.options.offset)),
                  dim_attribute(key::length, shape[shape.size() - 2])};
  return add(x, b.add(s, {table}, infer_positions), p.where);
}

struct SinusoidalOptions {
  double base = 10000;
  DimSpec offset = 0;
};
/// Completed by what it is added to, as learned_positions.
struct SinusoidalPositions {
  SinusoidalOptions options;
  Where where;
};
/// PE(p, 2i) = sin(p / base^(2i/width)), PE(p, 2i+1) = cos(p / base^(2i/width)) (Vaswani et al. 2017, §3.5).
constexpr SinusoidalPositions sinusoidal_positions(SinusoidalOptions o = {}, Where where = Where::current()) {
  return {o, where};
}

/// The node alone: a table [length, width].
constexpr Node sinusoidal_positions(Builder& b, DimSpec length, std::int64_t width, SinusoidalOptions o = {},
                                    Where where = Where::current()) {
  NodeSpec s = rule::spec(op::sinusoidal_positions, "", b, where);
  const Dim rows = b.intern(length), columns = b.dim_number(width);
  s.attributes = {dim_attribute(key::offset, b.intern(o.offset)), dim_attribute(key::length, rows),
                  number(key::base, o.base)};
  return b.add(s, {}, [&](Graph&, const NodeSpec&, const Inputs&, Failure&) { return rule::one({rows, columns}); });
}
constexpr Node operator+(Node x, const SinusoidalPositions& p) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return x;
  const auto shape = b.shape(x);
  if (shape.size() < 2) {
    b.fail(op::sinusoidal_positions, "", {error_kind::wrong_rank, shape_text(b.graph(), shape), "[..., length, width]"},
           p.where.line());
    return {&b, {}};
  }
  NodeSpec s = rule::spec(op::sinusoidal_positions, "", b, p.where);
  s.attributes = {dim_attribute(key::offset, b.intern(p.options.offset)),
                  dim_attribute(key::length, shape[shape.size() - 2]), number(key::base, p.options.base)};
  const Node table = b.add(s, {}, [&](Graph&, const NodeSpec&, const Inputs&, Failure&) {
    return rule::one({shape[shape.size() - 2], shape.back()});
  });
  return add(x, table, p.where);
}

}  // namespace treadle

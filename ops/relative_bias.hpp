#pragma once
// Learned biases by the bucketed distance of key and query (Raffel et al. 2020, T5).

#include <treadle/ops/position_tables.hpp>
#include <treadle/ops/rule.hpp>

namespace treadle {

/// table [buckets, heads] → [1, heads, q_len, k_len].
constexpr Outputs infer_relative_bias(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto& table = in[0].shape;
  if (table.size() != 2) return rule::fail(f, error_kind::wrong_rank, shape_text(g, table), "[buckets, heads]");
  const Attribute *q = rule::find(s, key::q_len), *k = rule::find(s, key::k_len);
  if (q == nullptr || k == nullptr)
    return rule::fail(f, error_kind::bad_attribute, "no lengths", "the attributes q_len and k_len");
  const std::int64_t one_way = rule::get_integer(s, key::causal), far = rule::get_integer(s, key::max_distance),
                     unit = one_way != 0 ? 2 : 4;
  const auto buckets = g.dims.constant(table[0]);
  if (!buckets || *buckets < unit || *buckets % unit != 0)
    return rule::fail(f, error_kind::bad_attribute, Text(dim_text(g, table[0]).view()).append(" buckets"),
                      Text("a multiple of ").append(unit));
  if (far <= *buckets / unit)
    return rule::fail(f, error_kind::bad_attribute, Text("max_distance ").append(far),
                      Text("more than ").append(*buckets / unit));
  std::vector<Dim> shape = {g.dims.number(1), table[1], static_cast<Dim>(q->integer), static_cast<Dim>(k->integer)};
  return rule::one(shape);
}

struct RelativeBiasOptions {
  std::int64_t max_distance = 128;  ///< from here on all distances share a bucket
  bool bidirectional = true;        ///< false: keys after the query share bucket 0
  bool top_left = false;            ///< true: positions count from the first key; false: the last query is at the last
};

/// What to add to scores: table[bucket(key − query), head], seen as [1, heads, q_len, k_len] (relative_bucket in
/// ops/position_tables.hpp). As the bias of `attention` it is one number for each head and distance, q_len + k_len in
/// all, made once if the table is a parameter; nothing of q_len · k_len exists.
constexpr Node relative_bias(Node table, DimSpec q_len, DimSpec k_len, RelativeBiasOptions o = {},
                             Where where = Where::current()) {
  Builder& b = *table.builder;
  NodeSpec s = rule::spec(op::relative_bias, "", b, where);
  s.attributes = {integer(key::max_distance, o.max_distance), integer(key::causal, !o.bidirectional),
                  integer(key::top_left, o.top_left), dim_attribute(key::q_len, b.intern(q_len)),
                  dim_attribute(key::k_len, b.intern(k_len))};
  return b.add(s, {table}, infer_relative_bias);
}

struct T5BiasOptions {
  std::int64_t heads = 1, buckets = 32, max_distance = 128;
  bool bidirectional = true;  ///< true in encoders, false in decoders
};

/// T5's relative position bias with its table as the parameter `leaf`.weight [buckets, heads]: for
/// AttentionOptions.bias. T5 shares it between its layers and does not scale q·k (`scale = 1`) (Raffel et al. 2020,
/// §2.1).
constexpr Node t5_bias(std::string_view leaf, Builder& b, DimSpec q_len, DimSpec k_len, T5BiasOptions o = {},
                       Where where = Where::current()) {
  const Node table =
      b.parameter(Text(leaf).append(".weight").view(), {b.dim_number(o.buckets), b.dim_number(o.heads)}, where);
  return relative_bias(table, q_len, k_len, {.max_distance = o.max_distance, .bidirectional = o.bidirectional}, where);
}

}  // namespace treadle

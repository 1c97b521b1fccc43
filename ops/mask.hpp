#pragma once
// Mask nodes: which keys a query may see, as an expression, a boolean tensor (true keeps), or both and'ed.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/ops/rule.hpp>

namespace treadle {

using mask::Mask;

constexpr Outputs infer_mask(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto q_len = static_cast<Dim>(rule::get_integer(s, key::q_len)),
             k_len = static_cast<Dim>(rule::get_integer(s, key::k_len));
  std::vector<Dim> shape;
  shape.push_back(g.dims.number(1));
  shape.push_back(g.dims.number(1));
  shape.push_back(q_len);
  shape.push_back(k_len);
  if (rule::get_integer(s, key::has_tensor) != 0) {
    const auto& t = in[0].shape;
    if (in[0].dtype != boolean) return rule::fail(f, error_kind::wrong_dtype, name(in[0].dtype), "bool, true keeps");
    if (t.size() < 2 || t.size() > 4)
      return rule::fail(f, error_kind::wrong_mask_rank, Text("rank ").append(static_cast<std::int64_t>(t.size())),
                        "rank 2 to 4: [batch, heads, q_len, k_len]");
    std::vector<Dim> both;
    if (!rule::broadcast(g, t, shape, both) || both[2] != q_len || both[3] != k_len)
      return rule::fail(f, error_kind::shape_mismatch, shape_text(g, t), shape_text(g, shape));
    shape = both;
  }
  return rule::one(shape, boolean);
}

namespace rule {
/// Appends the graph inputs that hold the tables of the expression at `root`, in order of first appearance.
constexpr bool add_tables(Builder& b, std::int32_t root, std::vector<Node>& inputs, std::string_view leaf, op o,
                          const Where& where) {
  Graph& g = b.graph();
  std::vector<std::int32_t> stack{root}, seen;
  std::vector<Text> names;
  while (!stack.empty()) {
    const std::int32_t id = stack.back();
    stack.pop_back();
    if (id < 0) continue;
    bool known = false;
    for (std::int32_t x : seen) known = known || x == id;
    if (known) continue;
    seen.push_back(id);
    const scalar::Node n = g.scalars.nodes[id];
    if (n.op == scalar::Op::lookup) {
      const std::string_view table(g.scalars.names.data() + n.name_first, static_cast<std::size_t>(n.name_size));
      bool listed = false;
      for (const Text& t : names) listed = listed || t.view() == table;
      if (!listed) names.push_back(Text(table));
    }
    stack.push_back(n.c);
    stack.push_back(n.b);
    stack.push_back(n.a);
  }
  for (const Text& t : names) {
    std::int32_t found = -1;
    for (std::size_t i = 0; i < g.nodes.size(); ++i)
      if ((g.nodes[i].op == op::input || g.nodes[i].op == op::parameter) && g.strings[g.nodes[i].leaf] == t.view())
        found = static_cast<std::int32_t>(i);
    if (found < 0) {
      b.fail(o, leaf,
             {error_kind::unknown_table, Text("lookup \"").append(t.view()).append("\""), "the name of an input"},
             where.line());
      return false;
    }
    inputs.push_back({&b, {found, 0}});
  }
  return true;
}
}  // namespace rule

/// A mask node from an expression, over q_len × k_len.
constexpr Node mask_node(Builder& b, const Mask& m, Dim q_len, Dim k_len, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::mask, "", b, where);
  const auto root = static_cast<std::int32_t>(m.add_to(b.graph().scalars));
  s.attributes = {integer(key::has_tensor, 0), scalar_attribute(key::expression, root),
                  dim_attribute(key::q_len, q_len), dim_attribute(key::k_len, k_len)};
  std::vector<Node> inputs;
  if (!rule::add_tables(b, root, inputs, "mask", op::mask, where)) return {&b, {}};
  return b.add(s, inputs, infer_mask);
}
constexpr Node mask_node(Builder& b, const Mask& m, DimSpec q_len, DimSpec k_len, Where where = Where::current()) {
  return mask_node(b, m, b.intern(q_len), b.intern(k_len), where);
}

/// A mask node from a boolean tensor (true keeps) that broadcasts to [batch, heads, q_len, k_len]; and'ed with `m`
/// where given.
constexpr Node mask_node(Node tensor, Dim q_len, Dim k_len, const Mask* m = nullptr, Where where = Where::current()) {
  Builder& b = *tensor.builder;
  NodeSpec s = rule::spec(op::mask, "", b, where);
  s.attributes = {integer(key::has_tensor, 1)};
  std::vector<Node> inputs{tensor};
  if (m != nullptr) {
    const auto root = static_cast<std::int32_t>(m->add_to(b.graph().scalars));
    s.attributes.push_back(scalar_attribute(key::expression, root));
    if (!rule::add_tables(b, root, inputs, "mask", op::mask, where)) return {&b, {}};
  }
  s.attributes.push_back(dim_attribute(key::q_len, q_len));
  s.attributes.push_back(dim_attribute(key::k_len, k_len));
  return b.add(s, inputs, infer_mask);
}

constexpr Outputs infer_mask_to_bias(Graph&, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].dtype != boolean) return rule::fail(f, error_kind::wrong_dtype, name(in[0].dtype), "a mask");
  return rule::one(in[0].shape, f32);
}
/// 0 where the mask keeps, −inf elsewhere: a mask by addition.
constexpr Node mask_to_bias(Node m, Where where = Where::current()) {
  return m.builder->add(rule::spec(op::mask_to_bias, "", *m.builder, where), {m}, infer_mask_to_bias);
}

constexpr Outputs infer_select(Graph& g, const NodeSpec&, const Inputs& in, Failure& f) {
  std::vector<Dim> shape;
  if (in[0].dtype != boolean) return rule::fail(f, error_kind::wrong_dtype, name(in[0].dtype), "a mask");
  if (!rule::broadcast(g, in[0].shape, in[1].shape, shape))
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, in[0].shape), shape_text(g, in[1].shape));
  return rule::one(shape, in[1].dtype);
}
/// x where the mask keeps, `otherwise` elsewhere: a mask by selection.
constexpr Node select(Node m, Node x, double otherwise, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::select, "", *x.builder, where);
  s.attributes.push_back(number(key::value, otherwise));
  return x.builder->add(s, {m, x}, infer_select);
}

}  // namespace treadle

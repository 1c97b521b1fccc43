#pragma once
// Mask nodes: which keys a query may see, as an expression, a boolean tensor (true keeps), or both and'ed.
//
// Shape [batch or 1, heads or 1, q_len, k_len]: a mask that looks tables up by batch element or head
// (`lookup("lengths", b)`) has as many as the table has rows. Attention evaluates its mask for every batch element and
// head in any case.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/ops/rule.hpp>

namespace treadle {

using mask::Mask;

/// What a lookup of this name reads: any node of rank 1 or 2, computed in the run too; f32 for lookup, i32, i64 or bool
/// for lookup<i32>.
struct NamedTable {
  std::string_view name;
  Node node;
};
/// Tables given by name, `{{"cluster", ids}, …}`. (No vector: options are values that every compiler copies in constant
/// evaluation.)
struct Tables {
  static constexpr int capacity = 8;
  NamedTable list[capacity]{};
  int count = 0;
  constexpr Tables() = default;
  constexpr Tables(std::initializer_list<NamedTable> tables) {
    for (const NamedTable& t : tables) add(t);
  }
  constexpr void add(const NamedTable& t) {
    if (count == capacity) throw "a function is given at most 8 tables by name";
    list[count++] = t;
  }
  constexpr const NamedTable* find(std::string_view name) const {
    for (int i = 0; i < count; ++i)
      if (list[i].name == name) return &list[i];
    return nullptr;
  }
};

constexpr Outputs infer_mask(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto length = [&](key k) {
    for (const Attribute& a : s.attributes)
      if (a.key == k) return static_cast<Dim>(a.integer);
    return g.dims.number(1);
  };
  const Dim q_len = length(key::q_len), k_len = length(key::k_len);
  std::vector<Dim> shape;
  shape.push_back(length(key::b_len));
  shape.push_back(length(key::h_len));
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
/// Whether the functions that the model has so far can be traced; reports the first that cannot.
constexpr bool traceable(Builder& b, op o, std::string_view leaf, const Where& where) {
  const scalar::Misuse m = b.graph().scalars.misuse;
  if (m == scalar::Misuse::none) return true;
  const bool branch = m == scalar::Misuse::branch, both = m == scalar::Misuse::and_and;
  b.fail(o, leaf,
         {error_kind::untraceable,
          branch ? "if or ?: on a traced value"
          : both ? "a && b"
                 : "a || b",
          branch ? "where(condition, a, b)"
          : both ? "a & b"
                 : "a | b"},
         where.line());
  return false;
}

/// Appends the nodes that hold the tables of the expression at `root`, in order of first appearance: those given by
/// name, else the graph's inputs and parameters of these names. `listed_names`: the tables' names, where somebody asks.
constexpr bool add_tables(Builder& b, std::int32_t root, std::vector<Node>& inputs, std::string_view leaf, op o,
                          const Where& where, const Tables& given = {}, std::vector<Text>* listed_names = nullptr) {
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
    if (scalar::reads_table(n.op)) {
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
    if (listed_names != nullptr) listed_names->push_back(t);
    if (const NamedTable* table = given.find(t.view())) {
      if (!b.usable(table->node)) return false;
      const NodeData& source = g.nodes[static_cast<std::size_t>(table->node.value.node)];
      // Backends find the tables that are inputs by their names, so a name must not lead to two of them.
      const std::string_view own =
          source.op == op::input || source.op == op::parameter ? g.strings[source.leaf] : std::string_view();
      for (const Text& other : names) {
        if (own.empty() || own == t.view() || other.view() != own) continue;
        b.fail(o, leaf,
               {error_kind::bad_attribute,
                Text("table \"").append(t.view()).append("\" given as the input \"").append(own).append("\""),
                "names that no other table of the function has"},
               where.line());
        return false;
      }
      inputs.push_back(table->node);
      continue;
    }
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

namespace rule {
/// The size along `index` (the batch element or the head) of the first table among `inputs` that the expression at
/// `root` indexes with it; −1 if there is none.
constexpr Dim indexed_length(Builder& b, const std::vector<Node>& inputs, const std::vector<Text>& names,
                             std::int32_t root, scalar::Op index) {
  const Graph& g = b.graph();
  const unsigned wanted = index == scalar::Op::b ? scalar::uses_b : scalar::uses_h;
  if ((g.scalars.nodes[static_cast<std::size_t>(root)].uses & wanted) == 0) return -1;
  for (std::int32_t i = 0; i <= root; ++i) {  // children stand before their parents
    const scalar::Node& n = g.scalars.nodes[static_cast<std::size_t>(i)];
    if (!scalar::reads_table(n.op)) continue;
    const std::string_view table(g.scalars.names.data() + n.name_first, static_cast<std::size_t>(n.name_size));
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      const std::vector<Dim> shape = b.shape(inputs[t]);
      if (names[t].view() != table) continue;
      for (std::int32_t axis = 0; axis < 2; ++axis) {
        const std::int32_t at = n.child(axis);
        if (at >= 0 && static_cast<std::size_t>(axis) < shape.size() &&
            g.scalars.nodes[static_cast<std::size_t>(at)].op == index)
          return shape[static_cast<std::size_t>(axis)];
      }
    }
  }
  return -1;
}

/// Whether the function at `root` holds a sum over features.
constexpr bool sums_features(const scalar::Pool& pool, std::int32_t root) {
  bool any = false;
  for (std::int32_t i = 0; i <= root; ++i) any = any || pool[i].op == scalar::Op::sum;
  if (!any) return false;
  std::vector<char> reached;
  for (std::int32_t i = 0; i <= root; ++i) reached.push_back(i == root);
  for (std::int32_t i = root; i >= 0; --i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    if (pool[i].op == scalar::Op::sum) return true;
    for (int j = 0; j < 3; ++j)
      if (const std::int32_t child = pool[i].child(j); child >= 0) reached[static_cast<std::size_t>(child)] = 1;
  }
  return false;
}

/// Attributes of a mask over an expression, and its tables as inputs. False after an error.
constexpr bool add_expression(Builder& b, const Mask& m, NodeSpec& s, std::vector<Node>& inputs, const Where& where,
                              const Tables& given = {}) {
  const auto root = static_cast<std::int32_t>(m.add_to(b.graph().scalars));
  s.attributes.push_back(scalar_attribute(key::expression, root));
  if (!traceable(b, op::mask, "mask", where)) return false;
  if (sums_features(b.graph().scalars, root)) {
    b.fail(op::mask, "mask", {error_kind::bad_attribute, "a sum over features", "a sum in a score function"},
           where.line());
    return false;
  }
  std::vector<Node> tables;
  std::vector<Text> names;
  if (!add_tables(b, root, tables, "mask", op::mask, where, given, &names)) return false;
  const Dim batch_len = indexed_length(b, tables, names, root, scalar::Op::b),
            heads = indexed_length(b, tables, names, root, scalar::Op::h);
  if (batch_len >= 0) s.attributes.push_back(dim_attribute(key::b_len, batch_len));
  if (heads >= 0) s.attributes.push_back(dim_attribute(key::h_len, heads));
  for (const Node& t : tables) inputs.push_back(t);
  return true;
}
}  // namespace rule

/// Lengths that are dims of the graph already. A type of its own: a plain number must not be taken for a dim's index.
struct ScoreLengths {
  Dim q_len, k_len;
};

/// A mask node from an expression, over q_len × k_len; `tables` gives what it looks up, where that is no input.
constexpr Node mask_node(Builder& b, const Mask& m, ScoreLengths lengths, const Tables& tables,
                         Where where = Where::current()) {
  NodeSpec s = rule::spec(op::mask, "", b, where);
  s.attributes = {integer(key::has_tensor, 0)};
  std::vector<Node> inputs;
  if (!rule::add_expression(b, m, s, inputs, where, tables)) return {&b, {}};
  s.attributes.push_back(dim_attribute(key::q_len, lengths.q_len));
  s.attributes.push_back(dim_attribute(key::k_len, lengths.k_len));
  return b.add(s, inputs, infer_mask);
}
constexpr Node mask_node(Builder& b, const Mask& m, ScoreLengths lengths, Where where = Where::current()) {
  return mask_node(b, m, lengths, Tables(), where);
}
constexpr Node mask_node(Builder& b, const Mask& m, DimSpec q_len, DimSpec k_len, Where where = Where::current()) {
  return mask_node(b, m, ScoreLengths{b.intern(q_len), b.intern(k_len)}, where);
}

/// A mask node from a boolean tensor (true keeps) that broadcasts to [batch, heads, q_len, k_len]; and'ed with `m`
/// where given.
constexpr Node mask_node(Node tensor, ScoreLengths lengths, const Mask* m, const Tables& tables,
                         Where where = Where::current()) {
  Builder& b = *tensor.builder;
  NodeSpec s = rule::spec(op::mask, "", b, where);
  s.attributes = {integer(key::has_tensor, 1)};
  std::vector<Node> inputs{tensor};
  if (m != nullptr && !rule::add_expression(b, *m, s, inputs, where, tables)) return {&b, {}};
  s.attributes.push_back(dim_attribute(key::q_len, lengths.q_len));
  s.attributes.push_back(dim_attribute(key::k_len, lengths.k_len));
  return b.add(s, inputs, infer_mask);
}
constexpr Node mask_node(Node tensor, ScoreLengths lengths, const Mask* m = nullptr, Where where = Where::current()) {
  return mask_node(tensor, lengths, m, Tables(), where);
}
constexpr Node mask_node(Node tensor, DimSpec q_len, DimSpec k_len, const Mask* m = nullptr,
                         Where where = Where::current()) {
  Builder& b = *tensor.builder;
  return mask_node(tensor, ScoreLengths{b.intern(q_len), b.intern(k_len)}, m, where);
}

namespace rule {
/// A mask whose values are asked for says over how many batch elements and heads; those that attention evaluates need
/// not.
constexpr bool has_values(Builder& b, Node m, op o, const Where& where) {
  if (!b.usable(m)) return false;
  const GraphView g = b.graph().view();
  const Attribute* e = g.nodes[m.value.node].op == op::mask ? g.find(m.value.node, key::expression) : nullptr;
  if (e == nullptr) return true;
  const unsigned uses = g.scalars[static_cast<int>(e->integer)].uses;
  const bool open_b = (uses & scalar::uses_b) != 0 && g.find(m.value.node, key::b_len) == nullptr;
  const bool open_h = (uses & scalar::uses_h) != 0 && g.find(m.value.node, key::h_len) == nullptr;
  if (!open_b && !open_h) return true;
  b.fail(o, "mask",
         {error_kind::bad_attribute, Text("a mask by ").append(open_b ? "batch element" : "head"),
          Text("tables looked up by ").append(open_b ? "b" : "h")},
         where.line());
  return false;
}
}  // namespace rule

constexpr Outputs infer_mask_to_bias(Graph&, const NodeSpec&, const Inputs& in, Failure& f) {
  if (in[0].dtype != boolean) return rule::fail(f, error_kind::wrong_dtype, name(in[0].dtype), "a mask");
  return rule::one(in[0].shape, f32);
}
/// 0 where the mask keeps, −inf elsewhere: a mask by addition.
constexpr Node mask_to_bias(Node m, Where where = Where::current()) {
  if (!rule::has_values(*m.builder, m, op::mask_to_bias, where)) return {m.builder, {}};
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
  if (!rule::has_values(*x.builder, m, op::select, where)) return {x.builder, {}};
  NodeSpec s = rule::spec(op::select, "", *x.builder, where);
  s.attributes.push_back(number(key::value, otherwise));
  return x.builder->add(s, {m, x}, infer_select);
}

}  // namespace treadle

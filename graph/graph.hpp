#pragma once
// The graph: what a model is. Tables of plain data addressed by index, no pointers (docs/02_graph.md).
//
// `Graph` owns growing tables (the builder and the passes use it, at compile time and at run time); `Frozen`
// (freeze.hpp) owns exactly sized ones; `GraphView` reads either. Nodes stand in topological order over the whole
// graph: the body of a repeat stands before its repeat node, and values captured by a body stand before the body. A
// node's region says where it runs.

#include <treadle/graph/dims.hpp>
#include <treadle/graph/dtype.hpp>
#include <treadle/graph/op.hpp>
#include <treadle/graph/scalar/expression.hpp>
#include <treadle/graph/strings.hpp>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace treadle {

/// Output `output` of node `node`.
struct Value {
  std::int32_t node = -1, output = 0;
  constexpr bool operator==(const Value&) const = default;
  constexpr bool valid() const { return node >= 0; }
};

struct Range {
  std::int32_t first = 0, count = 0;
};

enum class AttributeKind : std::uint8_t {
  integer,
  number,
  dim,     ///< integer holds a Dim
  scalar,  ///< integer holds a root in the scalar pool
  table,   ///< one integer per iteration of the innermost repeat: the first of a range in `tables`
  data,    ///< numbers: integer is the first, number the count of a range in `tables`, which holds the bits of doubles
};

struct Attribute {
  treadle::key key{};
  AttributeKind kind = AttributeKind::integer;
  std::int64_t integer = 0;
  double number = 0;
  constexpr bool operator==(const Attribute&) const = default;
};
constexpr Attribute integer(key k, std::int64_t v) { return {k, AttributeKind::integer, v, 0}; }
constexpr Attribute number(key k, double v) { return {k, AttributeKind::number, 0, v}; }
constexpr Attribute dim_attribute(key k, Dim d) { return {k, AttributeKind::dim, d, 0}; }
constexpr Attribute data_attribute(key k, std::int64_t first, std::int64_t count) {
  return {k, AttributeKind::data, first, static_cast<double>(count)};
}
constexpr Attribute scalar_attribute(key k, std::int32_t root) { return {k, AttributeKind::scalar, root, 0}; }

/// dtype and shape of one output.
struct ValueInfo {
  DType dtype = DType::f32;
  std::int32_t rank = 0;
  std::int32_t first_dim = 0;  ///< into `shapes`
};

struct NodeData {
  treadle::op op{};
  std::int32_t region = 0;
  std::int32_t scope = -1, leaf = -1;  ///< string ids; a scope has "#" where a repeat's iteration number stands
  Range inputs;                        ///< into `edges`
  Range outputs;                       ///< into `values`
  Range attributes;                    ///< into `attributes`
  std::int32_t line = 0;               ///< of the model's source
};

struct Region {
  std::int32_t parent = -1;       ///< enclosing region; the main region has none
  std::int32_t repeat_node = -1;  ///< the node that runs it
  Range results;                  ///< into `edges`: carried, side outputs, states
};

enum class error_kind : std::uint8_t {
  none,
  wrong_width,
  shape_mismatch,
  heads_do_not_divide_width,
  heads_do_not_divide,
  head_dim_mismatch,
  unknown_dim,
  duplicate_name,
  output_never_set,
  wrong_mask_rank,
  wrong_rank,
  wrong_dtype,
  bad_attribute,
  unknown_table,
  untraceable,
  carried_shape_changes,
  too_many_nodes,
};

/// The first mistake in a model: where, which rule, and both facts as text.
struct ModelError {
  error_kind kind = error_kind::none;
  treadle::op op{};
  std::int32_t scope = -1, leaf = -1;    ///< string ids
  std::int32_t got = -1, expected = -1;  ///< string ids
  std::int32_t line = 0;
  constexpr explicit operator bool() const { return kind != error_kind::none; }
};

struct GraphView {
  std::span<const NodeData> nodes;
  std::span<const Value> edges;
  std::span<const ValueInfo> values;
  std::span<const Dim> shapes;
  std::span<const Attribute> attributes;
  std::span<const std::int64_t> tables;
  std::span<const Region> regions;
  StringsView strings;
  DimsView dims;
  scalar::View scalars;

  constexpr std::int32_t size() const { return static_cast<std::int32_t>(nodes.size()); }
  constexpr std::span<const Value> inputs(std::int32_t n) const {
    return edges.subspan(nodes[n].inputs.first, nodes[n].inputs.count);
  }
  constexpr std::span<const Attribute> attributes_of(std::int32_t n) const {
    return attributes.subspan(nodes[n].attributes.first, nodes[n].attributes.count);
  }
  constexpr const ValueInfo& info(Value v) const { return values[nodes[v.node].outputs.first + v.output]; }
  constexpr std::span<const Dim> shape(Value v) const {
    const ValueInfo& i = info(v);
    return shapes.subspan(i.first_dim, i.rank);
  }
  constexpr std::span<const Value> results(std::int32_t region) const {
    return edges.subspan(regions[region].results.first, regions[region].results.count);
  }
  /// Into `attributes`; −1 if there is none. g++ with -fsanitize=undefined takes no pointer into a constant graph for a
  /// constant once it is compared with null, so what is asked at compile time goes by this.
  constexpr std::int32_t index_of(std::int32_t n, key k) const {
    const Range r = nodes[n].attributes;
    const Attribute* a = attributes.data() + r.first;
    for (std::int32_t i = 0; i < r.count; ++i)
      if (a[i].key == k) return r.first + i;
    return -1;
  }
  constexpr const Attribute* find(std::int32_t n, key k) const {
    const std::int32_t i = index_of(n, k);
    return i < 0 ? nullptr : &attributes[i];
  }
  constexpr std::int64_t get_integer(std::int32_t n, key k, std::int64_t otherwise = 0) const {
    const std::int32_t i = index_of(n, k);
    return i < 0 ? otherwise : attributes[i].integer;
  }
  /// With per-iteration attributes: the value at iteration `i` of the innermost repeat.
  constexpr std::int64_t get_integer_at(std::int32_t n, key k, std::int64_t i, std::int64_t otherwise = 0) const {
    const std::int32_t at = index_of(n, k);
    if (at < 0) return otherwise;
    const Attribute& a = attributes[at];
    return a.kind == AttributeKind::table ? tables[a.integer + i] : a.integer;
  }
  constexpr double get_number(std::int32_t n, key k, double otherwise = 0) const {
    const std::int32_t i = index_of(n, k);
    return i < 0 ? otherwise : attributes[i].number;
  }
  /// Element `i` of a constant, in row-major order.
  constexpr double constant_element(std::int32_t n, std::int64_t i) const {
    const std::int32_t at = index_of(n, key::data);
    return at < 0 ? get_number(n, key::value) : std::bit_cast<double>(tables[attributes[at].integer + i]);
  }
  /// How many nodes of this op the graph holds (a repeat's body counts once).
  constexpr int count(op o) const {
    int c = 0;
    for (const NodeData& n : nodes) c += n.op == o;
    return c;
  }
  constexpr std::string_view leaf(std::int32_t n) const { return strings[nodes[n].leaf]; }
  constexpr std::string_view scope(std::int32_t n) const { return strings[nodes[n].scope]; }
};

/// A span over a vector, with fewer calls than std::span's own conversion: compilers evaluate this often.
template <class T>
constexpr std::span<const T> span_of(const std::vector<T>& v) {
  return {v.data(), v.size()};
}

/// dtype and shape of an output that is about to be added.
struct OutputSpec {
  DType dtype = DType::f32;
  std::vector<Dim> shape;
};

struct Graph {
  std::vector<NodeData> nodes;
  std::vector<Value> edges;
  std::vector<ValueInfo> values;
  std::vector<Dim> shapes;
  std::vector<Attribute> attributes;
  std::vector<std::int64_t> tables;
  std::vector<Region> regions;
  Strings strings;
  Dims dims;
  scalar::Pool scalars;
  ModelError error;

  constexpr GraphView view() const {
    return {span_of(nodes),  span_of(edges),   span_of(values), span_of(shapes), span_of(attributes),
            span_of(tables), span_of(regions), strings.view(),  dims.view(),     scalars.view()};
  }
  constexpr operator GraphView() const { return view(); }
  constexpr int count(op o) const { return view().count(o); }

  // What building asks for at every node, without a view of everything.
  constexpr const ValueInfo& info(Value v) const { return values[nodes[v.node].outputs.first + v.output]; }
  constexpr std::vector<Dim> shape(Value v) const {
    const ValueInfo& i = info(v);
    const Dim* first = shapes.data() + i.first_dim;
    std::vector<Dim> s(first, first + i.rank);
    return s;
  }
  constexpr OutputSpec output_spec(Value v) const {
    OutputSpec o;  // filled in by hand: g++ 12 loses a vector that is made inside braces
    o.dtype = info(v).dtype;
    o.shape = shape(v);
    return o;
  }
};

/// What every way of adding a node goes through.
struct NodeSpec {
  treadle::op op{};
  std::int32_t region = 0;
  std::int32_t scope = -1, leaf = -1;
  std::vector<Value> inputs;
  std::vector<Attribute> attributes;
  std::vector<OutputSpec> outputs;
  std::int32_t line = 0;
};

constexpr std::int32_t add_node(Graph& g, const NodeSpec& s) {
  NodeData n;
  n.op = s.op;
  n.region = s.region;
  n.scope = s.scope;
  n.leaf = s.leaf;
  n.line = s.line;
  n.inputs = {static_cast<std::int32_t>(g.edges.size()), static_cast<std::int32_t>(s.inputs.size())};
  const Value* inputs = s.inputs.data();  // loops over pointers: see Strings::intern
  for (std::int32_t i = 0; i < n.inputs.count; ++i) g.edges.push_back(inputs[i]);
  n.attributes = {static_cast<std::int32_t>(g.attributes.size()), static_cast<std::int32_t>(s.attributes.size())};
  const Attribute* attributes = s.attributes.data();
  for (std::int32_t i = 0; i < n.attributes.count; ++i) g.attributes.push_back(attributes[i]);
  n.outputs = {static_cast<std::int32_t>(g.values.size()), static_cast<std::int32_t>(s.outputs.size())};
  for (const OutputSpec& o : s.outputs) {
    g.values.push_back(
        {o.dtype, static_cast<std::int32_t>(o.shape.size()), static_cast<std::int32_t>(g.shapes.size())});
    const Dim* shape = o.shape.data();
    for (std::size_t i = 0, rank = o.shape.size(); i < rank; ++i) g.shapes.push_back(shape[i]);
  }
  g.nodes.push_back(n);
  return static_cast<std::int32_t>(g.nodes.size()) - 1;
}

/// The spec that would add node `n` again; region and inputs still name the old graph.
constexpr NodeSpec spec_of(const GraphView& g, std::int32_t n) {
  const NodeData& d = g.nodes[n];
  NodeSpec s;
  s.op = d.op;
  s.region = d.region;
  s.scope = d.scope;
  s.leaf = d.leaf;
  s.line = d.line;
  const Value* inputs = g.edges.data() + d.inputs.first;
  s.inputs.assign(inputs, inputs + d.inputs.count);
  const Attribute* attributes = g.attributes.data() + d.attributes.first;
  s.attributes.assign(attributes, attributes + d.attributes.count);
  s.outputs.reserve(static_cast<std::size_t>(d.outputs.count));
  for (int i = 0; i < d.outputs.count; ++i) {
    const ValueInfo& v = g.info({n, i});
    const Dim* first = g.shapes.data() + v.first_dim;
    OutputSpec o;
    o.dtype = v.dtype;
    o.shape.assign(first, first + v.rank);
    s.outputs.push_back(o);
  }
  return s;
}

}  // namespace treadle

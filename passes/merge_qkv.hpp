#pragma once
// Projections of one value become one wider projection: a single pass over the input, and a larger matrix product.
//
//   %3 = linear "q" (%0, %1) {…}       %3 = concatenate (%1, %2) {axis=0}            weights [out, in]: folded at bind
//   %4 = linear "k" (%0, %2) {…}   →   %4 = linear "q+k" (%0, %3) {…}
//                                      %5 = slice (%4) {axis=2, begin=0, length=…}
//                                      %6 = slice (%4) {axis=2, begin=…, length=…}
//
// In one region, with the same function, all with bias or all without, none with a residual. Weights and biases must be
// parameters, perhaps scaled, that nothing else reads, since a concatenation of tied ones would copy them. Slices of
// the last dim are views.

#include <treadle/passes/fold_scales.hpp>

namespace treadle {
namespace qkv {

/// A parameter, perhaps scaled, that nothing else reads.
constexpr bool own_parameter(Rewriter& r, Value v) {
  while (r.is_single(v, op::scale)) v = r.input(v.node, 0);
  return r.is_single(v, op::parameter);
}

/// Whether n is a projection that may be joined with others.
constexpr bool candidate(Rewriter& r, std::int32_t n) {
  const GraphView& g = r.old();
  if (g.nodes[n].op != op::linear || g.get_integer(n, key::has_residual) != 0) return false;
  for (int i = 1; i < g.nodes[n].inputs.count; ++i)
    if (!own_parameter(r, r.input(n, i))) return false;
  return !r.is_state(r.input(n, 0));
}

constexpr bool joins(Rewriter& r, std::int32_t a, std::int32_t b) {
  const GraphView& g = r.old();
  return g.nodes[a].region == g.nodes[b].region && r.input(a, 0) == r.input(b, 0) && candidate(r, b) &&
         g.get_integer(a, key::has_bias) == g.get_integer(b, key::has_bias) &&
         g.get_integer(a, key::function) == g.get_integer(b, key::function);
}

/// concatenate, axis 0, of input i of every projection.
constexpr Value join_parameters(Rewriter& r, const std::vector<std::int32_t>& group, int i, Dim width) {
  NodeSpec s = r.beside(group[0], op::concatenate);
  for (std::int32_t n : group) {
    scales::copy_parameter(r, r.input(n, i));
    s.inputs.push_back(r.map(r.input(n, i)));
  }
  s.attributes.push_back(integer(key::axis, 0));
  OutputSpec o{f32, r.shape(r.input(group[0], i))};
  o.shape[0] = width;
  s.outputs.push_back(o);
  return r.add(s);
}

/// "q+k+v"
constexpr std::int32_t joined_leaf(Rewriter& r, const std::vector<std::int32_t>& group) {
  std::vector<char> text;
  for (std::int32_t n : group) {
    if (!text.empty()) text.push_back('+');
    for (char c : r.old().leaf(n)) text.push_back(c);
  }
  return r.graph().strings.intern({text.data(), text.size()});
}

}  // namespace qkv

constexpr Graph merge_qkv(Graph g, PassReport* report = nullptr) {
  if (g.count(op::linear) < 2) return nothing_to_do(std::move(g), "merge_qkv", report);
  return rewrite(std::move(g), "merge_qkv", report, [](Rewriter& r, std::int32_t n) {
    if (!qkv::candidate(r, n)) return false;
    std::vector<std::int32_t> group;
    group.push_back(n);
    const NodeData* nodes = r.old().nodes.data();  // a loop over pointers: see Strings::intern
    for (std::int32_t m = n + 1, count = r.old().size(); m < count; ++m)
      if (nodes[m].op == op::linear && !r.is_done(m) && qkv::joins(r, n, m)) group.push_back(m);
    if (group.size() < 2) return false;

    Graph& made = r.graph();
    Dim width = made.dims.number(0);
    for (std::int32_t m : group) width = made.dims.add(width, r.shape({m, 0}).back());
    NodeSpec s = r.beside(n, op::linear);
    s.leaf = qkv::joined_leaf(r, group);
    s.attributes = spec_of(r.old(), n).attributes;
    s.inputs.push_back(r.map(r.input(n, 0)));
    for (int i = 1; i < r.old().nodes[n].inputs.count; ++i)
      s.inputs.push_back(qkv::join_parameters(r, group, i, width));
    OutputSpec o{f32, r.shape({n, 0})};
    o.shape.back() = width;
    s.outputs.push_back(o);
    const Value joined = r.add(s);

    Dim begin = made.dims.number(0);
    for (std::int32_t m : group) {
      NodeSpec part = r.beside(m, op::slice);
      part.leaf = r.old().nodes[m].leaf;
      part.inputs.push_back(joined);
      const Dim length = r.shape({m, 0}).back();
      part.attributes.push_back(integer(key::axis, static_cast<std::int64_t>(r.shape({m, 0}).size()) - 1));
      part.attributes.push_back(dim_attribute(key::begin, begin));
      part.attributes.push_back(dim_attribute(key::length, length));
      part.outputs.push_back({f32, r.shape({m, 0})});
      r.replace({m, 0}, r.add(part));
      begin = made.dims.add(begin, length);
    }
    return true;
  });
}

}  // namespace treadle

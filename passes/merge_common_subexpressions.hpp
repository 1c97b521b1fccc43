#pragma once
// Nodes that compute the same from the same inputs become one.
//
//   %1 = mask () {…`k <= q`…}                    %1 = mask () {…`k <= q`…}
//   %2 = attention (%0, %0, %0, %1)              %2 = attention (%0, %0, %0, %1)
//   %3 = mask () {…`k <= q`…}                →   %3 = attention (%2, %2, %2, %1)
//   %4 = attention (%2, %2, %2, %3)
//
// Inside one region: a body's nodes and the outer ones are not compared. Never merged: what has an identity (inputs,
// parameters, states, appends, repeats, outputs), and what reads a state directly, since an append may stand between
// the two. Names of other nodes do not matter; the first one stays.

#include <treadle/passes/rewrite.hpp>

namespace treadle {
namespace cse {

constexpr bool reads_state(const GraphView& g, std::int32_t n) {
  const Value* inputs = g.edges.data() + g.nodes[n].inputs.first;  // loops over pointers: see Strings::intern
  for (std::int32_t i = 0, count = g.nodes[n].inputs.count; i < count; ++i)
    if (is_state(g, inputs[i])) return true;
  return false;
}

/// Which node each node equals: itself, or an earlier one.
using Twins = std::vector<std::int32_t>;

constexpr bool same_outputs(const GraphView& g, std::int32_t a, std::int32_t b) {
  if (g.nodes[a].outputs.count != g.nodes[b].outputs.count) return false;
  for (std::int32_t i = 0; i < g.nodes[a].outputs.count; ++i) {
    const auto x = g.shape({a, i}), y = g.shape({b, i});
    if (g.info({a, i}).dtype != g.info({b, i}).dtype || x.size() != y.size()) return false;
    for (std::size_t d = 0; d < x.size(); ++d)
      if (x[d] != y[d]) return false;
  }
  return true;
}

/// Same op, region, inputs (after merging), attributes and outputs: some ops (reshape, constant, sinusoidal positions)
/// have their shape in the output alone.
constexpr bool same(const GraphView& g, const Twins& twins, std::int32_t a, std::int32_t b) {
  const NodeData &x = g.nodes[a], &y = g.nodes[b];
  if (x.region != y.region || x.inputs.count != y.inputs.count || x.attributes.count != y.attributes.count)
    return false;
  const Value *edges = g.edges.data(), *of_x = edges + x.inputs.first, *of_y = edges + y.inputs.first;
  for (int i = 0; i < x.inputs.count; ++i) {
    const Value p = of_x[i], q = of_y[i];
    if (p.output != q.output || twins[p.node] != twins[q.node]) return false;
  }
  const Attribute* attributes = g.attributes.data();
  for (int i = 0; i < x.attributes.count; ++i) {
    const Attribute &p = attributes[x.attributes.first + i], &q = attributes[y.attributes.first + i];
    if (p.key != q.key || p.kind != q.kind) return false;
    if (p.kind == AttributeKind::data) {
      if (p.number != q.number) return false;
      for (std::int64_t t = 0; t < static_cast<std::int64_t>(p.number); ++t)
        if (g.tables[p.integer + t] != g.tables[q.integer + t]) return false;
      continue;
    }
    if (p.kind != AttributeKind::table && !(p == q)) return false;
    if (p.kind != AttributeKind::table || p.integer == q.integer) continue;
    const std::int64_t times = g.get_integer(g.regions[x.region].repeat_node, key::times);
    for (std::int64_t t = 0; t < times; ++t)
      if (g.tables[p.integer + t] != g.tables[q.integer + t]) return false;
  }
  return same_outputs(g, a, b);
}

constexpr Twins find_twins(const GraphView& g) {
  Twins twins;
  std::vector<std::vector<std::int32_t>> seen(op_count);  // candidates, by op
  for (std::int32_t n = 0; n < g.size(); ++n) {
    twins.push_back(n);
    const op o = g.nodes[n].op;
    if (has_identity(o) || reads_state(g, n)) continue;
    auto& candidates = seen[static_cast<std::size_t>(o)];
    for (std::int32_t m : candidates) {
      if (!same(g, twins, m, n)) continue;
      twins[n] = m;
      break;
    }
    if (twins[n] == n) candidates.push_back(n);
  }
  return twins;
}

}  // namespace cse

constexpr Graph merge_common_subexpressions(Graph g, PassReport* report = nullptr) {
  const cse::Twins twins = cse::find_twins(g);
  bool any = false;
  for (std::size_t n = 0; n < twins.size(); ++n) any = any || twins[n] != static_cast<std::int32_t>(n);
  if (!any) return nothing_to_do(std::move(g), "merge_common_subexpressions", report);
  return rewrite(std::move(g), "merge_common_subexpressions", report, [&](Rewriter& r, std::int32_t n) {
    if (twins[n] == n) return false;
    for (std::int32_t i = 0; i < r.old().nodes[n].outputs.count; ++i) r.replace({n, i}, r.map({twins[n], i}));
    return true;
  });
}

}  // namespace treadle

#pragma once
// Nodes that compute the same from the same inputs become one.
//
//   %1 = mask () {…`k <= q`…}                    %1 = mask () {…`k <= q`…}
//   %2 = attention (%0, %0, %0, %1)              %2 = attention (%0, %0, %0, %1)
//   %3 = mask () {…`k <= q`…}                →   %3 = attention (%2, %2, %2, %1)
//   %4 = attention (%2, %2, %2, %3)
//
// Inside one region: a body's nodes and the outer ones are not compared. Never merged: what has an identity (inputs,
// parameters, states, appends, repeats, outputs), and what reads a state directly, since an append may stand between the two.
// Names of other nodes do not matter; the first one stays.

#include <treadle/passes/rewrite.hpp>

namespace treadle {
namespace cse {

constexpr bool reads_state(const Rewriter& r, std::int32_t n) {
  for (int i = 0; i < r.old().nodes[n].inputs.count; ++i)
    if (r.is_state(r.input(n, i))) return true;
  return false;
}

/// Same op, region, inputs (after merging) and attributes. Outputs then are the same too.
constexpr bool same(const Rewriter& r, std::int32_t a, std::int32_t b) {
  const GraphView g = r.old();
  const NodeData &x = g.nodes[a], &y = g.nodes[b];
  if (x.op != y.op || x.region != y.region || x.inputs.count != y.inputs.count || x.attributes.count != y.attributes.count) return false;
  for (int i = 0; i < x.inputs.count; ++i)
    if (!(r.map(r.input(a, i)) == r.map(r.input(b, i)))) return false;
  for (int i = 0; i < x.attributes.count; ++i) {
    const Attribute &p = g.attributes[x.attributes.first + i], &q = g.attributes[y.attributes.first + i];
    if (p.key != q.key || p.kind != q.kind) return false;
    if (p.kind != AttributeKind::table && !(p == q)) return false;
    if (p.kind != AttributeKind::table || p.integer == q.integer) continue;
    const std::int64_t times = g.get_integer(g.regions[x.region].repeat_node, key::times);
    for (std::int64_t t = 0; t < times; ++t)
      if (g.tables[p.integer + t] != g.tables[q.integer + t]) return false;
  }
  return true;
}

}  // namespace cse

constexpr Graph merge_common_subexpressions(Graph g, PassReport* report = nullptr) {
  std::vector<std::vector<std::int32_t>> seen(op_count);  // candidates, by op
  return rewrite(std::move(g), "merge_common_subexpressions", report, [&](Rewriter& r, std::int32_t n) {
    const op o = r.old().nodes[n].op;
    if (has_identity(o) || cse::reads_state(r, n)) return false;
    for (std::int32_t m : seen[static_cast<std::size_t>(o)]) {
      if (!cse::same(r, m, n)) continue;
      for (std::int32_t i = 0; i < r.old().nodes[n].outputs.count; ++i) r.replace({n, i}, r.map({m, i}));
      return true;
    }
    seen[static_cast<std::size_t>(o)].push_back(n);
    return false;
  });
}

}  // namespace treadle

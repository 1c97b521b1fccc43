#pragma once
// The start of a model, token embedding + positions and perhaps a norm, becomes one node: each row is written once.
//
//   %2 = embedding (%0, %ids)
//   %3 = scale (%2) {factor=27.7}
//   %4 = positions (%1) {…}            →   %3 = embedding_sum (%0, %ids, %4, %g, %b) {factor=27.7, normalise=1, …}
//   %5 = add (%3, %4)
//   %6 = layer_norm (%5, %g, %b)
//
// What is added has the embeddings' shape, or the last dims of it (so that it repeats over the batch): learned or
// sinusoidal positions, or another embedding. The norm joins if nothing else reads the sum. A scale of the embeddings
// is applied in the same pass over the row, instead of in a scaled copy of the table.

#include <treadle/passes/remove_dead_nodes.hpp>

namespace treadle {
namespace embeddings {

/// Whether `rows` can be added to embeddings of this shape without widening them.
constexpr bool fits(Rewriter& r, Value embedded, Value rows) {
  const GraphView g = r.old();
  const auto shape = g.shape(embedded), own = g.shape(rows);
  if (own.size() < 2 || own.size() > shape.size()) return false;
  for (std::size_t i = 1; i <= own.size(); ++i)
    if (own[own.size() - i] != shape[shape.size() - i]) return false;
  return true;
}

/// The embedding below v, through one scale; an invalid value if there is none or something else reads it.
constexpr Value find(Rewriter& r, Value v, double& factor) {
  factor = 1;
  if (r.is_single(v, op::scale)) {
    factor = r.old().get_number(v.node, key::factor, 1);
    v = r.input(v.node, 0);
  }
  if (!r.is_single(v, op::embedding) || r.is_state(r.input(v.node, 0)) || r.is_state(r.input(v.node, 1))) return {};
  return v;
}

constexpr bool fuse_sum(Rewriter& r, std::int32_t n) {
  for (int i = 0; i < 2; ++i) {
    double factor = 1;
    const Value embedded = find(r, r.input(n, i), factor), rows = r.input(n, 1 - i);
    if (!embedded.valid() || !fits(r, embedded, rows)) continue;
    NodeSpec s = r.beside(n, op::embedding_sum);
    s.leaf = r.old().nodes[embedded.node].leaf;
    s.inputs.push_back(r.map(r.input(embedded.node, 0)));
    s.inputs.push_back(r.map(r.input(embedded.node, 1)));
    s.inputs.push_back(r.map(rows));
    if (factor != 1) s.attributes.push_back(number(key::factor, factor));
    s.attributes.push_back(integer(key::normalise, 0));
    s.outputs.push_back({f32, r.shape({n, 0})});
    r.replace({n, 0}, r.add(s));
    return true;
  }
  return false;
}

/// A norm of what this pass has made (hence the look into the new graph).
constexpr bool fuse_norm(Rewriter& r, std::int32_t n) {
  const Value sum = r.input(n, 0), made = r.map(sum);
  if (!r.single_use(sum) || made.output != 0 || r.graph().nodes[made.node].op != op::embedding_sum) return false;
  NodeSpec s = spec_of(r.graph(), made.node);
  for (Attribute& a : s.attributes) {
    if (a.key != key::normalise) continue;
    if (a.integer != 0) return false;
    a.integer = r.op_of({n, 0}) == op::layer_norm ? 1 : 2;
  }
  for (int i = 1; i < r.old().nodes[n].inputs.count; ++i) s.inputs.push_back(r.map(r.input(n, i)));
  for (const Attribute& a : r.old().attributes_of(n)) s.attributes.push_back(a);
  r.replace({n, 0}, r.add(s));
  return true;
}

}  // namespace embeddings

constexpr Graph fuse_embedding(Graph g, PassReport* report = nullptr) {
  if (g.count(op::embedding) == 0) return nothing_to_do(std::move(g), "fuse_embedding", report);
  return rewrite_and_sweep(std::move(g), "fuse_embedding", report, [](Rewriter& r, std::int32_t n) {
    switch (r.old().nodes[n].op) {
      case op::add: return embeddings::fuse_sum(r, n);
      case op::layer_norm:
      case op::rms_norm: return embeddings::fuse_norm(r, n);
      default: return false;
    }
  });
}

}  // namespace treadle

#pragma once
// The gated half of a feed-forward layer (SwiGLU, GeGLU, ReGLU, bilinear; Shazeer 2020) becomes one node: x is read
// once, and neither product is ever in memory.
//
//   %3 = linear "gate" (%0, %1) {function=silu}       →   %3 = gated_linear "gate+up" (%0, %1, %2) {function=silu, …}
//   %4 = linear "up" (%0, %2) {function=none}
//   %5 = multiply (%3, %4)
//
// Both projections read the same value and are read by the product alone; at most one has an activation; both have a
// bias or none; neither has a residual. Their weights are known at bind, where they are packed.

#include <treadle/passes/fold_scales.hpp>
#include <treadle/passes/merge_qkv.hpp>

namespace treadle {
namespace gated {

constexpr bool candidate(Rewriter& r, Value v) {
  return r.is_single(v, op::linear) && r.old().get_integer(v.node, key::has_residual) == 0 &&
         scales::fixed_at_bind(r, r.input(v.node, 1)) && !r.is_state(r.input(v.node, 0));
}

}  // namespace gated

constexpr Graph fuse_gated_linear(Graph g, PassReport* report = nullptr) {
  if (g.count(op::multiply) == 0 || g.count(op::linear) < 2)
    return nothing_to_do(std::move(g), "fuse_gated_linear", report);
  return rewrite_and_sweep(std::move(g), "fuse_gated_linear", report, [](Rewriter& r, std::int32_t n) {
    if (!r.is({n, 0}, op::multiply)) return false;
    std::int32_t gate = r.input(n, 0).node, up = r.input(n, 1).node;
    if (!gated::candidate(r, r.input(n, 0)) || !gated::candidate(r, r.input(n, 1))) return false;
    const GraphView old = r.old();
    if (old.get_integer(up, key::function) != 0) std::swap(gate, up);
    const std::int64_t bias = old.get_integer(gate, key::has_bias);
    if (old.get_integer(up, key::function) != 0 || !(r.input(gate, 0) == r.input(up, 0)) ||
        bias != old.get_integer(up, key::has_bias) || !r.same_shape({gate, 0}, {up, 0}))
      return false;
    NodeSpec s = r.beside(n, op::gated_linear);
    std::vector<std::int32_t> both;
    both.push_back(gate);
    both.push_back(up);
    s.leaf = qkv::joined_leaf(r, both);
    s.inputs.push_back(r.map(r.input(gate, 0)));
    for (int i = 1; i <= 1 + bias; ++i) {
      s.inputs.push_back(r.map(r.input(gate, i)));
      s.inputs.push_back(r.map(r.input(up, i)));
    }
    s.attributes.push_back(integer(key::has_bias, bias));
    s.attributes.push_back(integer(key::function, old.get_integer(gate, key::function)));
    s.outputs.push_back({f32, r.shape({n, 0})});
    r.replace({n, 0}, r.add(s));
    return true;
  });
}

}  // namespace treadle

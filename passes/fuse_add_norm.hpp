#pragma once
// An addition and the norm of its result become one node with two results: the sum, which the residual stream goes on
// with, and its normalised rows. One pass over memory instead of two.
//
//   %2 = add (%0, %1)
//   %3 = layer_norm (%2, %g, %b)   →   %2 = add_layer_norm (%0, %1, %g, %b)
//   %4 = … (%2) … (%3) …               %4 = … (%2) … (%2#1) …
//
// Both operands have the sum's shape; gamma and beta are parameters, perhaps scaled. If two norms read the sum, the
// first one is taken. An addition that a projection can take as its residual is free there and not found here.
//
// Not across the border of a repeat, where the last addition of a body meets the first norm of the next iteration: that
// norm's parameters belong to the next iteration, and a body can name only its own. Turning the loop (first norm
// outside, the rows carried, the next gamma handed in) would change every parameter's name for a pass over memory that
// the projection in front of that addition mostly saves already.

#include <treadle/passes/fold_scales.hpp>

namespace treadle {
namespace add_norm {

/// The first norm of v whose parameters may stand as early as v; −1: none.
constexpr std::int32_t norm_of(Rewriter& r, Value v) {
  for (std::int32_t m = v.node + 1; m < r.old().size(); ++m) {
    const op o = r.old().nodes[m].op;
    if ((o != op::layer_norm && o != op::rms_norm) || !(r.input(m, 0) == v)) continue;
    bool fixed = true;
    for (int i = 1; i < r.old().nodes[m].inputs.count; ++i) fixed = fixed && scales::fixed_at_bind(r, r.input(m, i));
    if (fixed) return m;
  }
  return -1;
}

}  // namespace add_norm

constexpr Graph fuse_add_norm(Graph g, PassReport* report = nullptr) {
  if (g.count(op::add) == 0 || g.count(op::layer_norm) + g.count(op::rms_norm) == 0)
    return nothing_to_do(std::move(g), "fuse_add_norm", report);
  return rewrite_and_sweep(std::move(g), "fuse_add_norm", report, [](Rewriter& r, std::int32_t n) {
    const Value sum{n, 0};
    if (!r.is(sum, op::add) || !r.same_shape(r.input(n, 0), sum) || !r.same_shape(r.input(n, 1), sum)) return false;
    const std::int32_t m = add_norm::norm_of(r, sum);
    if (m < 0) return false;
    NodeSpec s = spec_of(r.old(), m);
    s.op = s.op == op::layer_norm ? op::add_layer_norm : op::add_rms_norm;
    s.inputs.clear();
    s.inputs.push_back(r.map(r.input(n, 0)));
    s.inputs.push_back(r.map(r.input(n, 1)));
    for (int i = 1; i < r.old().nodes[m].inputs.count; ++i) {
      scales::copy_parameter(r, r.input(m, i));
      s.inputs.push_back(r.map(r.input(m, i)));
    }
    s.outputs.push_back(s.outputs[0]);
    const std::int32_t made = r.add(s).node;
    r.replace(sum, {made, 0});
    r.replace({m, 0}, {made, 1});
    return true;
  });
}

}  // namespace treadle

#pragma once
// What follows a projection moves into it: bias, activation, residual. out = function(x Wᵀ + bias) + residual.
//
//   %3 = linear (%0, %1, %2) {has_bias=1, has_residual=0, function=none}
//   %4 = activation (%3) {function=gelu}       →   %3 = linear (%0, %1, %2) {has_bias=1, has_residual=0, function=gelu}
//
//   %5 = linear (%3, %4) {has_bias=0, has_residual=0, function=none}
//   %6 = add (%0, %5)                          →   %5 = linear (%3, %4, %0) {has_bias=0, has_residual=1, function=none}
//
// Only if nothing else reads the projection, if the activation has no α of its own, and if the other operand of the
// addition has the projection's shape (residual) or is a parameter [out] (bias).

#include <treadle/passes/remove_dead_nodes.hpp>

namespace treadle {
namespace epilogue {

constexpr bool has(const NodeSpec& s, key k) {
  for (const Attribute& a : s.attributes)
    if (a.key == k) return a.integer != 0;
  return false;
}
constexpr void set(NodeSpec& s, key k, std::int64_t v) {
  for (Attribute& a : s.attributes)
    if (a.key == k) {
      a.integer = v;
      return;
    }
  s.attributes.push_back(integer(k, v));
}

/// The linear that the new graph holds for an old value which only node n reads; {} if there is none.
/// (It may be one that this pass has made, hence the look into the new graph.)
constexpr Value linear_behind(Rewriter& r, Value v) {
  const Value made = r.map(v);
  if (!r.single_use(v) || made.output != 0 || r.graph().nodes[made.node].op != op::linear) return {};
  return made;
}

}  // namespace epilogue

constexpr Graph fuse_epilogue(Graph g, PassReport* report = nullptr) {
  if (g.count(op::linear) == 0) return nothing_to_do(std::move(g), "fuse_epilogue", report);
  return rewrite_and_sweep(std::move(g), "fuse_epilogue", report, [](Rewriter& r, std::int32_t n) {
    const op o = r.old().nodes[n].op;
    if (o != op::activation && o != op::add) return false;
    if (r.old().find(n, key::alpha) != nullptr) return false;
    for (int i = r.old().nodes[n].inputs.count - 1; i >= 0; --i) {
      const Value projection = epilogue::linear_behind(r, r.input(n, i));
      if (!projection.valid() || !r.same_shape({n, 0}, r.input(n, i))) continue;
      NodeSpec s = spec_of(r.graph(), projection.node);
      if (epilogue::has(s, key::has_residual)) continue;
      if (o == op::activation) {
        if (epilogue::has(s, key::function)) continue;
        epilogue::set(s, key::function, r.old().get_integer(n, key::function));
      } else {
        const Value other = r.input(n, 1 - i);
        const bool bias = r.is(other, op::parameter) && r.shape(other).size() == 1 &&
                          r.shape(other)[0] == r.shape({n, 0}).back() && !epilogue::has(s, key::has_bias) &&
                          !epilogue::has(s, key::function);
        // A state may be written between the projection and the addition, but both read it where they stand: at the
        // addition.
        if (!bias && !r.same_shape({n, 0}, other)) continue;
        epilogue::set(s, bias ? key::has_bias : key::has_residual, 1);
        s.inputs.push_back(r.map(other));
      }
      r.replace({n, 0}, r.add(s));
      return true;
    }
    return false;
  });
}

}  // namespace treadle

#pragma once
// Softmax over the last dim.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Dim flops_softmax(Graph& g, const NodeSpec& s, const Inputs&) {
  return g.dims.times(rule::product(g, s.outputs[0].shape), 5);
}

/// exp(x − max) / Σ exp(x − max) over the last dim. A row of −inf alone gives 0.
constexpr Node softmax(Node x, Where where = Where::current()) {
  return x.builder->add(rule::spec(op::softmax, "", *x.builder, where), {x}, rule::same_as_first);
}

}  // namespace treadle

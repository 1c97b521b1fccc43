#pragma once
// Rows that nobody asks for are not computed: a slice moves up through nodes that work position by position.
//
//   %2 = layer_norm (%0, %g, %b) : [batch, seq, 768]          %2 = slice (%0) {axis=1, begin=seq - 1, length=1}
//   %4 = linear (%2, %3) : [batch, seq, 50257]            →   %3 = layer_norm (%2, %g, %b) : [batch, 1, 768]
//   %5 = slice (%4) {axis=1, begin=seq - 1, length=1}         %5 = linear (%3, %4) : [batch, 1, 50257]
//
// The usual case is generation: logits of the last token alone. Nodes: linear, activation, scale, softcap, dropout,
// softmax and its logarithm, norms, add, multiply, splits, merges and transposes of heads, embeddings, positions,
// concatenation along another axis, and other slices of the same axis. The axis must not be the one that a node mixes
// (the last one of a projection, norm or softmax), and nothing else may read the node. Where every reader of a node is
// the same slice, as in x + f(norm(x)), it goes on through the node. It stops at attention, which reads all positions,
// and at a repeat, whose body is stored once for all iterations.

#include <treadle/ops/rules.hpp>
#include <treadle/passes/merge_common_subexpressions.hpp>
#include <treadle/passes/remove_dead_nodes.hpp>

namespace treadle {
namespace slices {

struct Cut {
  std::int64_t axis = 0;
  Dim begin = 0, length = 0;
};

inline constexpr std::int64_t no_axis = -1;   ///< the node mixes what lies along the axis
inline constexpr std::int64_t as_it_is = -2;  ///< the input has no such axis, or broadcasts along it

/// Along which axis input i of node v is cut if the node's result is cut along `axis`.
constexpr std::int64_t axis_of_input(Rewriter& r, Value v, int i, std::int64_t axis) {
  const GraphView g = r.old();
  const auto rank = static_cast<std::int64_t>(g.shape(v).size());
  const auto own = g.shape(r.input(v.node, i));
  const auto own_rank = static_cast<std::int64_t>(own.size());
  switch (r.op_of(v)) {
    case op::activation:
    case op::scale:
    case op::softcap: return axis;
    case op::softmax:
    case op::log_softmax: return axis + 1 == rank ? no_axis : axis;
    case op::layer_norm:
    case op::rms_norm:
      if (i > 0) return as_it_is;
      return axis + 1 == rank ? no_axis : axis;
    case op::linear: {
      const int parameters = 1 + (g.get_integer(v.node, key::has_bias) != 0);
      if (i >= 1 && i <= parameters) return as_it_is;
      return axis + 1 == rank ? no_axis : axis;
    }
    case op::add:
    case op::multiply:
    case op::dropout: {
      const std::int64_t at = axis - (rank - own_rank);
      if (at < 0) return as_it_is;
      return own[static_cast<std::size_t>(at)] == g.shape(v)[static_cast<std::size_t>(axis)] ? at : as_it_is;
    }
    case op::split_heads:  // [.., n, h·d] → [.., h, n, d]
      return axis + 3 < rank ? axis : axis + 2 == rank ? own_rank - 2 : no_axis;
    case op::merge_heads:  // [.., h, n, d] → [.., n, h·d]
      return axis + 2 < rank ? axis : axis + 2 == rank ? own_rank - 2 : no_axis;
    case op::transpose: {
      std::int64_t perm = g.get_integer(v.node, key::perm);
      for (std::int64_t k = 0; k < axis; ++k) perm /= 8;
      return perm % 8;
    }
    case op::embedding: return i == 0 ? as_it_is : axis < own_rank ? axis : no_axis;
    case op::positions: return axis == 0 ? as_it_is : no_axis;  // its own offset and length change
    case op::concatenate: return g.get_integer(v.node, key::axis) == axis ? no_axis : axis;
    case op::slice: return g.get_integer(v.node, key::axis) == axis ? axis : no_axis;
    default: return no_axis;
  }
}

/// Whether a cut along `axis` can pass the node of v.
constexpr bool passes_through(Rewriter& r, Value v, std::int64_t axis) {
  const op o = r.op_of(v);
  if (v.output != 0 || !r.single_use(v)) return false;
  if (o == op::sinusoidal_positions) return axis == 0;
  const int inputs = r.old().nodes[v.node].inputs.count;
  for (int i = 0; i < inputs; ++i)
    // The node is made anew further down: a state may have been written by then.
    if (axis_of_input(r, v, i, axis) == no_axis || r.is_state(r.input(v.node, i))) return false;
  return inputs > 0;
}

/// The part of an old value that node n cuts out, computed from as early as possible.
constexpr Value cut(Rewriter& r, std::int32_t n, Value v, Cut c) {
  Graph& made = r.graph();
  if (!passes_through(r, v, c.axis)) {
    NodeSpec s = r.beside(n, op::slice);
    s.inputs.push_back(r.map(v));
    s.attributes.push_back(integer(key::axis, c.axis));
    s.attributes.push_back(dim_attribute(key::begin, c.begin));
    s.attributes.push_back(dim_attribute(key::length, c.length));
    s.outputs.push_back({r.old().info(v).dtype, r.shape(v)});
    s.outputs[0].shape[static_cast<std::size_t>(c.axis)] = c.length;
    return r.add(s);
  }
  NodeSpec s = spec_of(r.old(), v.node);
  if (s.op == op::slice) {
    c.begin = made.dims.add(c.begin, static_cast<Dim>(r.old().get_integer(v.node, key::begin)));
    return cut(r, n, r.input(v.node, 0), c);
  }
  for (int i = 0; i < static_cast<int>(s.inputs.size()); ++i) {
    const std::int64_t axis = axis_of_input(r, v, i, c.axis);
    const Value input = r.input(v.node, i);
    s.inputs[static_cast<std::size_t>(i)] =
        axis == as_it_is ? r.map(input) : cut(r, n, input, {axis, c.begin, c.length});
  }
  if (s.op == op::positions || s.op == op::sinusoidal_positions)
    for (Attribute& a : s.attributes) {
      if (a.key == key::offset) a.integer = made.dims.add(static_cast<Dim>(a.integer), c.begin);
      if (a.key == key::length) a.integer = c.length;
    }
  s.outputs[0].shape[static_cast<std::size_t>(c.axis)] = c.length;
  return r.add(s);
}

}  // namespace slices

constexpr Graph move_slices_up(Graph g, PassReport* report = nullptr) {
  int moved = 0;
  // A second round finds what the first one made free: two equal slices of one node become one, its only reader.
  for (bool again = g.count(op::slice) != 0; again;) {
    PassReport round;
    g = rewrite_and_sweep(std::move(g), "move_slices_up", &round, [](Rewriter& r, std::int32_t n) {
      if (!r.is({n, 0}, op::slice)) return false;
      const Value v = r.input(n, 0);
      const GraphView old = r.old();
      const slices::Cut c{old.get_integer(n, key::axis), static_cast<Dim>(old.get_integer(n, key::begin)),
                          static_cast<Dim>(old.get_integer(n, key::length))};
      if (!slices::passes_through(r, v, c.axis)) return false;
      r.replace({n, 0}, slices::cut(r, n, v, c));
      return true;
    });
    moved += round.rewrites;
    again = round.rewrites > 0;
    if (again) g = merge_common_subexpressions(std::move(g));
  }
  if (report != nullptr) *report = {"move_slices_up", moved};
  return g;
}

}  // namespace treadle

#pragma once
// A scale beside something that multiplies by parameters anyway moves into those parameters, or into attention's scale.
//
//   %3 = linear (%0, %1, %2) {has_bias=1, …}       %3 = scale (%1) {factor=0.125}      a parameter: folded at bind
//   %4 = scale (%3) {factor=0.125}             →   %4 = scale (%2) {factor=0.125}
//                                                  %5 = linear (%0, %3, %4) {has_bias=1, …}
//
//   %1 = scale (%0) {factor=0.125}             →   %2 = scale (%1) {factor=0.125}
//   %3 = linear (%1, %2, %bias)                    %3 = linear (%0, %2, %bias)          the bias stays
//
//   %1 = scale (%0) {factor=0.125}             →   %1 = attention (%0, %k, %v) {scale=0.0625}
//   %2 = attention (%1, %k, %v) {scale=0.5}
//
// The scaled parameter is an ordinary node rather than an attribute of the projection: every op of the graph keeps one
// meaning, other passes (merge_qkv) see through it, and the planner multiplies while it packs the weight, so that a run
// costs nothing and no second copy exists. Attention's own scale is preferred, since it is there in any case.
//
// Between the scale and its target may stand transposes, splits and merges of heads and other scales, each read once.
// Targets: a projection without activation and residual above, or every projection that reads the scaled value below;
// a norm with a weight above; q or k of attention below. The weight of a projection must be a parameter that no other
// projection reads, since that one's packed copy would then have to exist twice. A scaled embedding is not folded: its
// table would have to be copied.

#include <treadle/passes/remove_dead_nodes.hpp>

#include <limits>

namespace treadle {
namespace scales {

/// Known when the model is bound: a parameter, or scaled parameters.
constexpr bool fixed_at_bind(Rewriter& r, Value v) {
  while (r.is(v, op::scale)) v = r.input(v.node, 0);
  return r.is(v, op::parameter);
}

/// Such a value has no inputs that are computed, so it may stand earlier than before.
constexpr void copy_parameter(Rewriter& r, Value v) {
  if (r.is(v, op::scale)) copy_parameter(r, r.input(v.node, 0));
  r.copy(v.node);
}

constexpr bool commutes(op o) {
  return o == op::transpose || o == op::split_heads || o == op::merge_heads || o == op::scale;
}

/// What each node of the old graph takes over; 1: nothing.
struct Factors {
  std::vector<double> above;                        ///< on the result of a projection or norm
  std::vector<double> below;                        ///< on a projection's x
  std::vector<double> attention;                    ///< on q·k
  std::vector<char> dropped;                        ///< scales that have moved
  std::vector<std::int32_t> reader;                 ///< by slot: the only reader, −1 if there are more
  std::vector<std::int32_t> x_reads, weight_reads;  ///< by slot: projections that read it so
};

constexpr std::size_t slot(Rewriter& r, Value v) {
  return static_cast<std::size_t>(std::int64_t{r.old().nodes[v.node].outputs.first} + v.output);
}

constexpr Factors prepare(Rewriter& r) {
  const GraphView g = r.old();
  Factors f;
  f.above.assign(g.nodes.size(), 1.0);
  f.below.assign(g.nodes.size(), 1.0);
  f.attention.assign(g.nodes.size(), 1.0);
  f.dropped.assign(g.nodes.size(), 0);
  f.reader.assign(g.values.size(), -1);
  f.x_reads.assign(g.values.size(), 0);
  f.weight_reads.assign(g.values.size(), 0);
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const auto inputs = g.inputs(n);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      f.reader[slot(r, inputs[i])] = r.single_use(inputs[i]) ? n : -1;
      if (g.nodes[n].op != op::linear) continue;
      f.x_reads[slot(r, inputs[i])] += i == 0;
      f.weight_reads[slot(r, inputs[i])] += i == 1;
    }
  }
  return f;
}

/// Whether the projection's weight may be scaled.
constexpr bool own_weight(Rewriter& r, const Factors& f, std::int32_t n) {
  const Value weight = r.input(n, 1);
  return fixed_at_bind(r, weight) && f.weight_reads[slot(r, weight)] == 1;
}

/// The end of the chain of nodes that a scale on v could pass on its way down.
constexpr Value end_of_chain(Rewriter& r, const Factors& f, Value v) {
  for (;;) {
    const std::int32_t n = f.reader[slot(r, v)];
    if (n < 0 || !commutes(r.op_of({n, 0}))) return v;
    v = {n, 0};
  }
}

constexpr bool into_attention(Rewriter& r, Factors& f, Value v, double factor) {
  const std::int32_t n = f.reader[slot(r, v)];
  if (n < 0 || r.op_of({n, 0}) != op::attention || !(v == r.input(n, 0) || v == r.input(n, 1))) return false;
  f.attention[n] *= factor;
  return true;
}

constexpr bool into_what_is_above(Rewriter& r, Factors& f, Value v, double factor) {
  while (r.single_use(v) && commutes(r.op_of(v))) v = r.input(v.node, 0);
  if (!r.single_use(v) || v.output != 0) return false;
  const GraphView g = r.old();
  const op o = r.op_of(v);
  const bool projection = o == op::linear && g.get_integer(v.node, key::function) == 0 &&
                          g.get_integer(v.node, key::has_residual) == 0 && own_weight(r, f, v.node) &&
                          (g.get_integer(v.node, key::has_bias) == 0 || fixed_at_bind(r, r.input(v.node, 2)));
  bool norm = (o == op::layer_norm || o == op::rms_norm) && g.get_integer(v.node, key::has_weight) != 0;
  for (int i = 1; norm && i < g.nodes[v.node].inputs.count; ++i) norm = fixed_at_bind(r, r.input(v.node, i));
  if (!projection && !norm) return false;
  f.above[v.node] *= factor;
  return true;
}

constexpr bool into_what_is_below(Rewriter& r, Factors& f, Value v, double factor) {
  if (r.users(v) == 0 || f.x_reads[slot(r, v)] != r.users(v)) return false;
  const auto reads = [&](std::int32_t n) { return r.op_of({n, 0}) == op::linear && r.input(n, 0) == v; };
  for (std::int32_t n = v.node + 1; n < r.old().size(); ++n)
    if (reads(n) && !own_weight(r, f, n)) return false;
  for (std::int32_t n = v.node + 1; n < r.old().size(); ++n)
    if (reads(n)) f.below[n] *= factor;
  return true;
}

/// Where every scale goes.
constexpr Factors find_factors(Rewriter& r) {
  Factors f = prepare(r);
  for (std::int32_t n = 0; n < r.old().size(); ++n) {
    if (!r.is({n, 0}, op::scale) || fixed_at_bind(r, {n, 0})) continue;
    const double factor = r.old().get_number(n, key::factor, 1);
    const bool finite = factor != 0 && factor - factor == 0;  // ∞ and NaN are not moved
    const Value end = end_of_chain(r, f, {n, 0});
    f.dropped[n] = factor == 1 ||
                   (finite && (into_attention(r, f, end, factor) || into_what_is_above(r, f, r.input(n, 0), factor) ||
                               into_what_is_below(r, f, end, factor)));
  }
  return f;
}

/// A parameter of node n, times `factor`.
constexpr Value scaled(Rewriter& r, std::int32_t n, Value parameter, double factor) {
  while (factor != 1 && r.is(parameter, op::scale)) {
    factor *= r.old().get_number(parameter.node, key::factor, 1);
    parameter = r.input(parameter.node, 0);
  }
  if (factor == 1) return r.map(parameter);
  NodeSpec s = r.beside(n, op::scale);
  s.inputs.push_back(r.map(parameter));
  s.attributes.push_back(number(key::factor, factor));
  s.outputs.push_back({f32, r.shape(parameter)});
  return r.add(s);
}

}  // namespace scales

constexpr Graph fold_scales(Graph g, PassReport* report = nullptr) {
  if (g.count(op::scale) == 0) return nothing_to_do(std::move(g), "fold_scales", report);
  scales::Factors f;
  int moved = 0;
  Graph made = rewrite_and_sweep(std::move(g), "fold_scales", report, [&](Rewriter& r, std::int32_t n) {
    if (f.dropped.empty()) f = scales::find_factors(r);
    if (f.dropped[n]) {
      ++moved;
      r.replace({n, 0}, r.map(r.input(n, 0)));
      return true;
    }
    if (f.above[n] == 1 && f.below[n] == 1 && f.attention[n] == 1) return false;
    NodeSpec s = r.mapped_spec(n);
    if (s.op == op::attention) {
      for (Attribute& a : s.attributes)
        if (a.key == key::scale) a.number *= f.attention[n];
    } else {
      const int parameters = s.op != op::linear || r.old().get_integer(n, key::has_bias) != 0 ? 2 : 1;
      for (int i = 1; i <= parameters && i < r.old().nodes[n].inputs.count; ++i)
        s.inputs[static_cast<std::size_t>(i)] =
            scales::scaled(r, n, r.input(n, i), f.above[n] * (i == 1 ? f.below[n] : 1.0));
    }
    const std::int32_t scaled = r.add(s).node;
    for (std::int32_t o = 0; o < static_cast<std::int32_t>(s.outputs.size()); ++o) r.replace({n, o}, {scaled, o});
    return true;
  });
  if (report != nullptr) report->rewrites = moved;  // not the nodes that took them over
  return made;
}

}  // namespace treadle

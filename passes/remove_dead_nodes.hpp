#pragma once
// Removes what no result depends on.
//
//   %1 = activation (%0) {function=relu}
//   %2 = activation (%0) {function=gelu}   →   %1 = activation (%0) {function=relu}
//   %3 = output "y" (%1)                       %2 = output "y" (%1)
//
// Inputs stay, since they are the model's signature. Appends stay with the repeats around them, since they change a
// state that outlives the run. A repeat loses side outputs and captured values that nobody reads.

#include <treadle/passes/rewrite.hpp>

namespace treadle {
namespace dead {

struct RepeatCounts {
  std::int64_t carried = 0, captured = 0, sides = 0;
  std::int32_t body = -1;
  constexpr RepeatCounts(GraphView g, std::int32_t n)
      : carried(g.get_integer(n, key::carried)),
        captured(g.get_integer(n, key::captured)),
        sides(g.get_integer(n, key::sides)),
        body(static_cast<std::int32_t>(g.get_integer(n, key::region))) {}
  constexpr bool is_side(std::int64_t output) const { return output >= carried && output < carried + sides; }
  constexpr bool is_captured(std::int64_t input) const { return input >= carried && input < carried + captured; }
};

struct Liveness {
  std::vector<char> nodes;   ///< by node
  std::vector<char> values;  ///< by slot: outputs that live nodes read
};

constexpr Liveness find_live(GraphView g) {
  Liveness live;
  live.nodes.assign(g.nodes.size(), 0);
  live.values.assign(g.values.size(), 0);
  std::vector<std::vector<std::int32_t>> region_inputs(g.regions.size());
  std::vector<Value> work;  // output −1: the node itself
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const op o = g.nodes[n].op;
    if (o == op::region_input) region_inputs[g.nodes[n].region].push_back(n);
    if (o == op::input || o == op::output || o == op::append) work.push_back({n, -1});
  }
  while (!work.empty()) {
    const Value v = work.back();
    work.pop_back();
    const NodeData& d = g.nodes[v.node];
    if (v.output >= 0 && !live.values[d.outputs.first + v.output]) {
      live.values[d.outputs.first + v.output] = 1;
      if (d.op == op::repeat) {
        const RepeatCounts c(g, v.node);
        if (c.is_side(v.output)) work.push_back(g.results(c.body)[v.output]);
      }
    }
    if (live.nodes[v.node]) continue;
    live.nodes[v.node] = 1;
    if (d.region != 0) work.push_back({g.regions[d.region].repeat_node, -1});
    if (d.op == op::region_input) {
      work.push_back(g.inputs(g.regions[d.region].repeat_node)[g.get_integer(v.node, key::index)]);
    } else if (d.op != op::repeat) {
      for (Value x : g.inputs(v.node)) work.push_back(x);
    } else {
      const RepeatCounts c(g, v.node);
      for (std::int32_t i = 0; i < d.outputs.count; ++i)
        if (!c.is_side(i)) work.push_back(g.results(c.body)[i]);
      for (std::int32_t n : region_inputs[c.body])
        if (!c.is_captured(g.get_integer(n, key::index))) work.push_back({n, 0});
    }
  }
  return live;
}

/// The repeat `n` without side outputs and captured values that nobody reads. `captured[i]`: input i is kept.
constexpr void copy_repeat(Rewriter& r, std::int32_t n, const Liveness& live, const std::vector<char>& kept) {
  const GraphView g = r.old();
  const RepeatCounts c(g, n);
  NodeSpec s = spec_of(g, n);
  std::vector<OutputSpec> outputs;
  std::vector<std::int32_t> from;
  for (std::int32_t o = 0; o < static_cast<std::int32_t>(s.outputs.size()); ++o) {
    if (c.is_side(o) && !live.values[g.nodes[n].outputs.first + o]) {
      r.drop_result(c.body, o);
      continue;
    }
    outputs.push_back(s.outputs[o]);
    from.push_back(o);
  }
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i)
    if (kept[i]) inputs.push_back(r.map(s.inputs[i]));
  for (Attribute& a : s.attributes) {
    if (a.key == key::sides) a.integer -= static_cast<std::int64_t>(s.outputs.size() - outputs.size());
    if (a.key == key::captured) a.integer -= static_cast<std::int64_t>(s.inputs.size() - inputs.size());
  }
  s.inputs = std::move(inputs);
  s.outputs = std::move(outputs);
  const std::int32_t made = r.add(s).node;
  r.graph().regions[c.body].repeat_node = made;
  for (std::size_t i = 0; i < from.size(); ++i) r.replace({n, from[i]}, {made, static_cast<std::int32_t>(i)});
}

/// Renumbers regions so that only those of living repeats remain.
constexpr void compact_regions(Graph& g) {
  std::vector<std::int32_t> number(g.regions.size(), -1);
  number[0] = 0;
  for (const NodeData& n : g.nodes)
    if (n.op == op::repeat)
      number[g.view().get_integer(static_cast<std::int32_t>(&n - g.nodes.data()), key::region)] = 1;
  std::vector<Region> regions;
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    if (number[r] < 0) continue;
    number[r] = static_cast<std::int32_t>(regions.size());
    regions.push_back(g.regions[r]);
  }
  for (Region& r : regions)
    if (r.parent >= 0) r.parent = number[r.parent];
  g.regions = std::move(regions);
  for (NodeData& n : g.nodes) n.region = number[n.region];
  for (Attribute& a : g.attributes)
    if (a.key == key::region) a.integer = number[a.integer];
}

}  // namespace dead

/// Reports the nodes and side outputs that it removed.
constexpr Graph remove_dead_nodes(Graph g, PassReport* report = nullptr) {
  const dead::Liveness live = dead::find_live(g);
  std::vector<std::vector<char>> kept(g.nodes.size());  // of each repeat: which inputs stay
  int removed = 0;
  int unread_sides = 0;
  for (std::int32_t n = 0, count = g.view().size(); n < count; ++n) {
    removed += !live.nodes[n];
    if (g.nodes[n].op != op::repeat) continue;
    kept[n].assign(g.nodes[n].inputs.count, 0);
    const dead::RepeatCounts c(g, n);
    for (std::int32_t o = 0; o < g.nodes[n].outputs.count; ++o)
      unread_sides += live.nodes[n] && c.is_side(o) && !live.values[g.nodes[n].outputs.first + o];
  }
  if (report != nullptr) *report = {"remove_dead_nodes", removed + unread_sides};
  if (removed + unread_sides == 0) return g;
  for (std::int32_t n = 0, count = g.view().size(); n < count; ++n)
    if (g.nodes[n].op == op::region_input && live.nodes[n])
      kept[g.regions[g.nodes[n].region].repeat_node][g.view().get_integer(n, key::index)] = 1;

  Rewriter r(std::move(g));
  bool repeat_died = false;
  for (std::int32_t n = 0, count = r.old().size(); n < count; ++n) {
    const op o = r.old().nodes[n].op;
    if (!live.nodes[n]) {
      repeat_died = repeat_died || o == op::repeat;
    } else if (o == op::repeat) {
      dead::copy_repeat(r, n, live, kept[n]);
    } else if (o == op::region_input) {
      NodeSpec s = r.mapped_spec(n);
      const auto& stays = kept[r.old().regions[s.region].repeat_node];
      for (Attribute& a : s.attributes) {
        if (a.key != key::index) continue;
        std::int64_t index = 0;
        for (std::int64_t i = 0; i < a.integer; ++i) index += stays[i];
        a.integer = index;
      }
      r.replace({n, 0}, r.add(s));
    } else {
      r.copy(n);
    }
  }
  Graph result = r.finish();
  if (repeat_died) dead::compact_regions(result);
  return result;
}

/// `rewrite`, then without the nodes that lost their last user.
template <class Hook>
constexpr Graph rewrite_and_sweep(Graph g, std::string_view pass, PassReport* report, Hook hook) {
  PassReport mine;
  Graph made = rewrite(std::move(g), pass, &mine, hook);
  if (report != nullptr) *report = mine;
  if (mine.rewrites == 0) return made;
  return remove_dead_nodes(std::move(made));
}

}  // namespace treadle

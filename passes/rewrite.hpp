#pragma once
// What passes are made of: a graph that is copied node by node, where a pass may put something else in a node's place.
//
//   constexpr Graph drop_unit_scales(Graph g, PassReport* report = nullptr) {
//     return rewrite(std::move(g), "drop_unit_scales", report, [](Rewriter& r, std::int32_t n) {
//       if (!r.is({n, 0}, op::scale) || r.old().get_number(n, key::factor) != 1) return false;  // false: copy the node
//       r.replace({n, 0}, r.map(r.input(n, 0)));                    // true: the node's users read this instead
//       return true;
//     });
//   }
//
// Everything runs in constant evaluation and at run time. Node numbers are those of the old graph, except in what `map`
// returns and `add` takes. Strings, dims, scalar expressions and tables keep their indices.

#include <treadle/graph/graph.hpp>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle {

/// What a pass did.
struct PassReport {
  std::string_view pass;
  int rewrites = 0;
};

/// For each value, by `nodes[v.node].outputs.first + v.output`: how many inputs and region results read it.
constexpr std::vector<std::int32_t> count_users(GraphView g) {
  std::vector<std::int32_t> users(g.values.size(), 0);
  for (const NodeData& n : g.nodes)
    for (std::int32_t i = 0; i < n.inputs.count; ++i) {
      const Value v = g.edges[n.inputs.first + i];
      ++users[g.nodes[v.node].outputs.first + v.output];
    }
  for (std::size_t r = 0; r < g.regions.size(); ++r)
    for (Value v : g.results(static_cast<std::int32_t>(r))) ++users[g.nodes[v.node].outputs.first + v.output];
  return users;
}

/// A node whose removal or merging would change what a model is given, keeps or returns.
constexpr bool has_identity(op o) {
  return o == op::input || o == op::parameter || o == op::state || o == op::region_input || o == op::repeat ||
         o == op::output || o == op::append;
}

class Rewriter {
 public:
  constexpr explicit Rewriter(Graph g) : old_(std::move(g)), users_(count_users(old_)) {
    mapped_.assign(old_.values.size(), Value{});
    done_.assign(old_.nodes.size(), 0);
    dropped_.assign(old_.edges.size(), 0);
    new_.regions = old_.regions;
    new_.strings = old_.strings;
    new_.dims = old_.dims;
    new_.scalars = old_.scalars;
    new_.tables = old_.tables;
    new_.error = old_.error;
  }

  // --- asking about the old graph ---------------------------------------------------------------------------
  constexpr GraphView old() const { return old_; }
  constexpr std::int32_t users(Value v) const { return users_[slot(v)]; }
  /// Read exactly once.
  constexpr bool single_use(Value v) const { return users(v) == 1; }
  constexpr Value input(std::int32_t n, int i) const { return old_.edges[old_.nodes[n].inputs.first + i]; }
  constexpr op op_of(Value v) const { return old_.nodes[v.node].op; }
  constexpr std::int32_t region_of(Value v) const { return old_.nodes[v.node].region; }
  /// Whether `v` is the first output of a node with this op.
  constexpr bool is(Value v, op o) const { return v.valid() && v.output == 0 && op_of(v) == o; }
  /// As `is`, and nothing else reads it: the node disappears if its user does.
  constexpr bool is_single(Value v, op o) const { return is(v, o) && single_use(v); }
  constexpr std::vector<Dim> shape(Value v) const {
    std::vector<Dim> s;
    for (Dim d : old_.view().shape(v)) s.push_back(d);
    return s;
  }
  constexpr bool same_shape(Value a, Value b) const {
    const GraphView g = old_;
    const auto x = g.shape(a), y = g.shape(b);
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != y[i]) return false;
    return true;
  }
  /// A state itself, or a repeat's slice of one: what it reads depends on when, so it must not be read later than written.
  constexpr bool is_state(Value v) const {
    if (op_of(v) == op::state) return true;
    if (op_of(v) != op::region_input) return false;
    const GraphView g = old_;
    const std::int32_t repeat = g.regions[region_of(v)].repeat_node;
    return g.get_integer(v.node, key::index) >= g.get_integer(repeat, key::carried) + g.get_integer(repeat, key::captured);
  }

  // --- building the new graph -------------------------------------------------------------------------------
  constexpr Graph& graph() { return new_; }
  /// Where a value of the old graph is in the new one.
  constexpr Value map(Value v) const { return mapped_[slot(v)]; }
  constexpr bool is_done(std::int32_t n) const { return done_[n] != 0; }
  /// Users of `v` read the new value `by` from here on.
  constexpr void replace(Value v, Value by) {
    mapped_[slot(v)] = by;
    done_[v.node] = 1;
  }
  /// Adds a node whose inputs are values of the new graph. Its first output.
  constexpr Value add(const NodeSpec& s) { return {add_node(new_, s), 0}; }
  /// The spec of an old node with inputs in the new graph.
  constexpr NodeSpec mapped_spec(std::int32_t n) const {
    NodeSpec s = spec_of(old_, n);
    for (Value& v : s.inputs) v = map(v);
    return s;
  }
  /// Copies an old node, if that has not happened; its inputs must be in the new graph already.
  constexpr void copy(std::int32_t n) {
    if (is_done(n)) return;
    const std::int32_t made = add_node(new_, mapped_spec(n));
    if (old_.nodes[n].op == op::repeat) {
      const auto body = static_cast<std::int32_t>(old_.view().get_integer(n, key::region));
      new_.regions[body].repeat_node = made;
    }
    for (std::int32_t o = 0; o < old_.nodes[n].outputs.count; ++o) mapped_[slot({n, o})] = {made, o};
    done_[n] = 1;
  }
  /// A node of the same region, scope and line as `n`, without leaf, inputs and outputs: what a replacement starts from.
  constexpr NodeSpec beside(std::int32_t n, op o) const {
    NodeSpec s;
    s.op = o;
    s.region = old_.nodes[n].region;
    s.scope = old_.nodes[n].scope;
    s.line = old_.nodes[n].line;
    return s;
  }

  /// Leaves out result `i` of a region.
  constexpr void drop_result(std::int32_t region, std::int32_t i) { dropped_[old_.regions[region].results.first + i] = 1; }

  /// Maps the results of regions and gives the graph.
  constexpr Graph finish() {
    for (std::size_t r = 0; r < new_.regions.size(); ++r) {
      const Range old_results = old_.regions[r].results;
      Range results{static_cast<std::int32_t>(new_.edges.size()), 0};
      for (std::int32_t i = 0; i < old_results.count; ++i) {
        const Value v = map(old_.edges[old_results.first + i]);
        if (!v.valid() || dropped_[old_results.first + i]) continue;
        new_.edges.push_back(v);
        ++results.count;
      }
      new_.regions[r].results = results;
    }
    return std::move(new_);
  }

 private:
  Graph old_, new_;
  std::vector<std::int32_t> users_;
  std::vector<Value> mapped_;  ///< by slot of the old value
  std::vector<char> done_;     ///< by old node
  std::vector<char> dropped_;  ///< by old edge: a region's result that is left out

  constexpr std::int32_t slot(Value v) const { return old_.nodes[v.node].outputs.first + v.output; }
};

/// Copies `g` and calls `hook(rewriter, n) → bool` for each node in order; true: the hook has put something in its place.
/// Nodes that nothing reads any more stay: see `rewrite_and_sweep` in remove_dead_nodes.hpp.
template <class Hook>
constexpr Graph rewrite(Graph g, std::string_view pass, PassReport* report, Hook hook) {
  Rewriter r(std::move(g));
  int rewrites = 0;
  for (std::int32_t n = 0; n < r.old().size(); ++n) {
    if (r.is_done(n)) continue;
    if (hook(r, n))
      ++rewrites;
    else
      r.copy(n);
  }
  if (report != nullptr) *report = {pass, rewrites};
  return r.finish();
}

}  // namespace treadle

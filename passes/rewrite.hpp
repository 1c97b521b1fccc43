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
constexpr std::vector<std::int32_t> count_users(const GraphView& g) {
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

/// A state itself, or a repeat's slice of one: what it reads depends on when, so it must not be read later than
/// written.
constexpr bool is_state(const GraphView& g, Value v) {
  if (g.nodes[v.node].op == op::state) return true;
  if (g.nodes[v.node].op != op::region_input) return false;
  const std::int32_t repeat = g.regions[g.nodes[v.node].region].repeat_node;
  return g.get_integer(v.node, key::index) >=
         g.get_integer(repeat, key::carried) + g.get_integer(repeat, key::captured);
}

/// What a pass returns if the graph has none of what it looks for: a copy saved.
constexpr Graph nothing_to_do(Graph g, std::string_view pass, PassReport* report) {
  if (report != nullptr) *report = {pass, 0};
  return g;
}

class Rewriter {
 public:
  constexpr explicit Rewriter(Graph g) : old_(std::move(g)), users_(count_users(old_)) {
    mapped_.assign(old_.values.size(), Value{});
    done_.assign(old_.nodes.size(), 0);
    dropped_.assign(old_.edges.size(), 0);
    new_.regions = old_.regions;
    new_.error = old_.error;
    view_ = old_.view();  // the pools' part of it is taken from the new graph where it is asked for (old)
    // The pools only grow, so both graphs can share them; copying costs most of a pass in constant evaluation.
    new_.strings = std::move(old_.strings);
    new_.dims = std::move(old_.dims);
    new_.scalars = std::move(old_.scalars);
    new_.tables = std::move(old_.tables);
    new_.nodes.reserve(old_.nodes.size() + 8);
    new_.edges.reserve(old_.edges.size() + 16);
    new_.values.reserve(old_.values.size() + 8);
    new_.shapes.reserve(old_.shapes.size() + 32);
    new_.attributes.reserve(old_.attributes.size() + 32);
  }
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  // --- asking about the old graph ---------------------------------------------------------------------------
  /// Valid until something is interned in `graph()`.
  constexpr const GraphView& old() {
    if (stale_) {
      view_.tables = span_of(new_.tables);
      view_.strings = new_.strings.view();
      view_.dims = new_.dims.view();
      view_.scalars = new_.scalars.view();
      stale_ = false;
    }
    return view_;
  }
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
  constexpr std::vector<Dim> shape(Value v) const { return old_.shape(v); }
  constexpr bool same_shape(Value a, Value b) const {
    const ValueInfo &x = old_.info(a), &y = old_.info(b);
    if (x.rank != y.rank) return false;
    const Dim *p = old_.shapes.data() + x.first_dim, *q = old_.shapes.data() + y.first_dim;
    for (std::int32_t i = 0; i < x.rank; ++i)
      if (p[i] != q[i]) return false;
    return true;
  }
  constexpr bool is_state(Value v) { return treadle::is_state(old(), v); }

  // --- building the new graph -------------------------------------------------------------------------------
  constexpr Graph& graph() {
    stale_ = true;
    return new_;
  }
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
  constexpr NodeSpec mapped_spec(std::int32_t n) {
    NodeSpec s = spec_of(old(), n);
    for (Value& v : s.inputs) v = map(v);
    return s;
  }
  /// Copies an old node, if that has not happened; its inputs must be in the new graph already.
  constexpr void copy(std::int32_t n) {
    if (is_done(n)) return;
    const NodeData& from = old_.nodes[n];
    const auto made = static_cast<std::int32_t>(new_.nodes.size());
    NodeData to = from;
    to.inputs.first = static_cast<std::int32_t>(new_.edges.size());
    to.attributes.first = static_cast<std::int32_t>(new_.attributes.size());
    to.outputs.first = static_cast<std::int32_t>(new_.values.size());
    // Loops over pointers: see Strings::intern. (A range insert costs more calls than a few push_backs.)
    const Value* inputs = old_.edges.data() + from.inputs.first;
    for (std::int32_t i = 0; i < from.inputs.count; ++i) new_.edges.push_back(map(inputs[i]));
    const Attribute* attributes = old_.attributes.data() + from.attributes.first;
    for (std::int32_t i = 0; i < from.attributes.count; ++i) new_.attributes.push_back(attributes[i]);
    for (std::int32_t o = 0; o < from.outputs.count; ++o) {
      const ValueInfo& v = old_.values[from.outputs.first + o];
      new_.values.push_back({v.dtype, v.rank, static_cast<std::int32_t>(new_.shapes.size())});
      const Dim* shape = old_.shapes.data() + v.first_dim;
      for (std::int32_t i = 0; i < v.rank; ++i) new_.shapes.push_back(shape[i]);
      mapped_[from.outputs.first + o] = {made, o};
    }
    new_.nodes.push_back(to);
    if (from.op == op::repeat) new_.regions[old().get_integer(n, key::region)].repeat_node = made;
    done_[n] = 1;
  }
  /// A node of the same region, scope and line as `n`, without leaf, inputs and outputs: what a replacement starts
  /// from.
  constexpr NodeSpec beside(std::int32_t n, op o) const {
    NodeSpec s;
    s.op = o;
    s.region = old_.nodes[n].region;
    s.scope = old_.nodes[n].scope;
    s.line = old_.nodes[n].line;
    return s;
  }

  /// Leaves out result `i` of a region.
  constexpr void drop_result(std::int32_t region, std::int32_t i) {
    dropped_[old_.regions[region].results.first + i] = 1;
  }

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
  GraphView view_;     ///< of the old graph, made once: hooks ask at every node
  bool stale_ = true;  ///< its pools are in the new graph and may have moved
  std::vector<std::int32_t> users_;
  std::vector<Value> mapped_;  ///< by slot of the old value
  std::vector<char> done_;     ///< by old node
  std::vector<char> dropped_;  ///< by old edge: a region's result that is left out

  constexpr std::int32_t slot(Value v) const { return old_.nodes[v.node].outputs.first + v.output; }
};

/// Copies `g` and calls `hook(rewriter, n) → bool` for each node in order; true: the hook has put something in its
/// place. Nodes that nothing reads any more stay: see `rewrite_and_sweep` in remove_dead_nodes.hpp.
template <class Hook>
constexpr Graph rewrite(Graph g, std::string_view pass, PassReport* report, Hook hook) {
  Rewriter r(std::move(g));
  int rewrites = 0;
  for (std::int32_t n = 0, count = r.old().size(); n < count; ++n) {
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

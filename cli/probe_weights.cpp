#include "probe_weights.hpp"

#include <treadle/graph/copy.hpp>

#include <utility>

namespace treadle::cli {

namespace {

class Probing {
 public:
  explicit Probing(GraphView g) : from_(g), to_(copy_of(g)), node_(g.nodes.size(), -1), sides_(g.regions.size()) {
    // The pools stay; nodes and what they range over are made again.
    to_.nodes.clear();
    to_.edges.clear();
    to_.values.clear();
    to_.shapes.clear();
    to_.attributes.clear();
  }

  ProbedGraph run() {
    for (std::int32_t n = 0; n < from_.size(); ++n) copy(n);
    set_results(0);
    ProbedGraph p;
    for (const Side& s : sides_[0]) {
      NodeSpec out;
      out.op = op::output;
      const std::string name = "weights of attention " + std::to_string(p.attentions.size());
      out.leaf = to_.strings.intern(name);
      out.inputs = {s.value};
      out.outputs = {to_.output_spec(s.value)};
      add_node(to_, out);
      p.attentions.push_back({name, s.scope, s.repeats, s.same_lengths});
    }
    p.graph = std::move(to_);
    return p;
  }

 private:
  struct Side {
    Value value;
    std::string scope;
    int repeats = 0;
    bool same_lengths = true;
  };

  GraphView from_;
  Graph to_;
  std::vector<std::int32_t> node_;             ///< of the old graph, in the new one
  std::vector<std::vector<Side>> sides_;       ///< of each region
  std::vector<std::pair<Value, int>> shifts_;  ///< old outputs of a repeat from this one on moved by so many

  Value moved(Value v) const {
    Value w{node_[static_cast<std::size_t>(v.node)], v.output};
    for (const auto& [first, by] : shifts_)
      if (v.node == first.node && v.output >= first.output) w.output += by;
    return w;
  }

  /// The results of a region, with its probes before the states.
  void set_results(std::int32_t region, std::size_t before_states = 0) {
    const auto old = from_.results(region);
    const auto first = static_cast<std::int32_t>(to_.edges.size());
    for (std::size_t i = 0; i <= old.size(); ++i) {
      if (region != 0 && i == before_states)
        for (const Side& s : sides_[static_cast<std::size_t>(region)]) to_.edges.push_back(s.value);
      if (i < old.size()) to_.edges.push_back(moved(old[i]));
    }
    to_.regions[static_cast<std::size_t>(region)].results = {first,
                                                             static_cast<std::int32_t>(to_.edges.size()) - first};
  }

  void copy(std::int32_t n) {
    NodeSpec s = spec_of(from_, n);
    for (Value& v : s.inputs) v = moved(v);
    const auto body = static_cast<std::int32_t>(s.op == op::repeat ? from_.get_integer(n, key::region) : 0);
    std::vector<Side> mine = std::exchange(sides_[static_cast<std::size_t>(body)], {});
    if (s.op != op::repeat) {
      sides_[static_cast<std::size_t>(body)] = std::move(mine);
      mine.clear();
    }
    const auto behind = static_cast<std::size_t>(from_.get_integer(n, key::carried) + from_.get_integer(n, key::sides));
    if (!mine.empty()) {
      sides_[static_cast<std::size_t>(body)] = mine;
      set_results(body, behind);
      std::vector<OutputSpec> stacked;
      for (const Side& side : mine) {
        OutputSpec o = to_.output_spec(side.value);
        o.shape.insert(o.shape.begin(), to_.dims.number(from_.get_integer(n, key::times)));
        stacked.push_back(std::move(o));
      }
      s.outputs.insert(s.outputs.begin() + static_cast<std::ptrdiff_t>(behind), stacked.begin(), stacked.end());
      bool told = false;
      for (Attribute& a : s.attributes)
        if (a.key == key::sides) a.integer += static_cast<std::int64_t>(mine.size()), told = true;
      if (!told) s.attributes.push_back(integer(key::sides, static_cast<std::int64_t>(mine.size())));
      shifts_.push_back({{n, static_cast<std::int32_t>(behind)}, static_cast<int>(mine.size())});
    } else if (s.op == op::repeat) {
      set_results(body, behind);
    }
    const std::int32_t copied = add_node(to_, s);
    node_[static_cast<std::size_t>(n)] = copied;
    if (s.op == op::repeat) to_.regions[static_cast<std::size_t>(body)].repeat_node = copied;
    std::vector<Side>& here = sides_[static_cast<std::size_t>(s.region)];
    for (std::size_t i = 0; i < mine.size(); ++i)
      here.push_back(
          {{copied, static_cast<std::int32_t>(behind + i)}, mine[i].scope, mine[i].repeats + 1, mine[i].same_lengths});
    if (s.op == op::attention) here.push_back(probe(n, copied, s));
  }

  Side probe(std::int32_t n, std::int32_t attention, const NodeSpec& s) {
    NodeSpec p;
    p.op = op::attention_probe;
    p.region = s.region;
    p.scope = s.scope;
    p.line = s.line;
    p.inputs = s.inputs;
    p.inputs[2] = {attention, 1};  // the log-sum-exp in the place of the values
    p.attributes = s.attributes;
    p.attributes.push_back(integer(key::probe, static_cast<std::int64_t>(treadle::probe::weights)));
    const std::vector<Dim> q = to_.shape(s.inputs[0]), k = to_.shape(s.inputs[1]);
    p.outputs.push_back({DType::f32, {q[0], q[1], q[2], k[2]}});
    const std::string_view scope = from_.scope(n), leaf = from_.leaf(n);
    std::string where(scope);
    if (!leaf.empty()) where += (where.empty() ? "" : ".") + std::string(leaf);
    return {{add_node(to_, p), 0}, where, 0, q[2] == k[2]};
  }
};

}  // namespace

ProbedGraph with_weights(GraphView g) { return Probing(g).run(); }

}  // namespace treadle::cli

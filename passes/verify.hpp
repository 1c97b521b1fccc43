#pragma once
// The verifier: what every graph must satisfy, as a list of rules. Passes are checked with it after every step in
// tests.
//
// A rule is a sentence and a function over one node. Rules stand in an order such that each may rely on those above it,
// so checking stops at the first rule that some node breaks.

#include <treadle/graph/tensor.hpp>
#include <treadle/ops/rules.hpp>
#include <treadle/passes/rewrite.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// A broken rule and the node that breaks it; `false` if all is well.
struct Violation {
  std::string_view rule;
  std::int32_t node = -1;
  constexpr explicit operator bool() const { return !rule.empty(); }
};

namespace verifier {

/// What rules look at: the graph, and room for dims that shape rules make.
struct Context {
  GraphView g;
  Graph scratch;
  constexpr explicit Context(GraphView view) : g(view) {
    for (const DimAtom& x : g.dims.atoms) scratch.dims.atoms.push_back(x);
    for (const DimTerm& x : g.dims.terms) scratch.dims.terms.push_back(x);
    for (const DimSum& x : g.dims.sums) scratch.dims.sums.push_back(x);
    for (char c : g.strings.chars) scratch.strings.chars.push_back(c);
    for (const StringEntry& x : g.strings.entries) scratch.strings.entries.push_back(x);
  }
};

template <class T>
constexpr bool inside(const Range& r, const std::span<const T>& table) {
  return r.first >= 0 && r.count >= 0 &&
         static_cast<std::size_t>(r.first) + static_cast<std::size_t>(r.count) <= table.size();
}

constexpr bool ranges(Context& c, std::int32_t n) {
  const NodeData& d = c.g.nodes[n];
  const auto strings = static_cast<std::int32_t>(c.g.strings.entries.size());
  const auto dims = static_cast<std::int32_t>(c.g.dims.sums.size());
  if (d.region < 0 || d.region >= static_cast<std::int32_t>(c.g.regions.size()) || d.scope >= strings ||
      d.leaf >= strings)
    return false;
  if (!inside(d.inputs, c.g.edges) || !inside(d.outputs, c.g.values) || !inside(d.attributes, c.g.attributes))
    return false;
  for (std::int32_t i = 0; i < d.outputs.count; ++i) {
    const ValueInfo& v = c.g.values[d.outputs.first + i];
    if (v.rank > max_rank || !inside({v.first_dim, v.rank}, c.g.shapes)) return false;
    for (Dim x : c.g.shape({n, i}))
      if (x < 0 || x >= dims) return false;
  }
  return true;
}

constexpr bool order(Context& c, std::int32_t n) {
  for (Value v : c.g.inputs(n))
    if (v.node < 0 || v.node >= n || v.output < 0 || v.output >= c.g.nodes[v.node].outputs.count) return false;
  return true;
}

constexpr bool visible(Context& c, std::int32_t n) {
  for (Value v : c.g.inputs(n))
    if (c.g.nodes[v.node].region != c.g.nodes[n].region) return false;
  return true;
}

constexpr bool attribute_kinds(Context& c, std::int32_t n) {
  for (const Attribute& a : c.g.attributes_of(n)) {
    int same = 0;
    for (const Attribute& b : c.g.attributes_of(n)) same += a.key == b.key;
    if (same != 1) return false;
    const auto limit = [&](std::size_t size) { return a.integer >= 0 && a.integer < static_cast<std::int64_t>(size); };
    switch (a.key) {
      case key::factor:
      case key::scale:
      case key::eps:
      case key::base:
      case key::value:
      case key::p:
      case key::alpha:
      case key::low:
      case key::high:
      case key::magnitude:
        if (a.kind != AttributeKind::number) return false;
        break;
      case key::begin:
      case key::length:
      case key::offset:
      case key::b_len:
      case key::h_len:
      case key::q_len:
      case key::k_len:
        if (a.kind != AttributeKind::dim || !limit(c.g.dims.sums.size())) return false;
        break;
      case key::expression:
        if (a.kind != AttributeKind::scalar || !limit(c.g.scalars.nodes.size())) return false;
        break;
      case key::data:
        if (a.kind != AttributeKind::data || a.number < 0 || a.integer < 0 ||
            static_cast<double>(a.integer) + a.number > static_cast<double>(c.g.tables.size()))
          return false;
        break;
      default:
        if (a.kind != AttributeKind::integer && a.kind != AttributeKind::table) return false;
        if (a.kind == AttributeKind::table && (c.g.nodes[n].region == 0 || !limit(c.g.tables.size()))) return false;
    }
  }
  return true;
}

/// Optional inputs that are announced by an attribute.
constexpr int announced(GraphView g, std::int32_t n) {
  int count = 0;
  for (key k : {key::has_weight, key::has_bias, key::has_residual, key::has_mask, key::has_sink, key::has_tensor,
                key::has_positions, key::has_gate, key::has_beta, key::has_state})
    count += g.get_integer(n, k) != 0;
  if (g.nodes[n].op == op::gated_linear) count += g.get_integer(n, key::has_bias) != 0;  // a bias for each weight
  return count;
}

constexpr bool arity(Context& c, std::int32_t n) {
  const NodeData& d = c.g.nodes[n];
  const int inputs = d.inputs.count, fixed = rule_of(d.op).least_inputs + announced(c.g, n);
  const bool two =  // lse; the sum; the state; indices and weights
      d.op == op::attention || d.op == op::recurrent_attention || d.op == op::add_layer_norm ||
      d.op == op::add_rms_norm || (d.op == op::linear_attention && c.g.get_integer(n, key::has_state) != 0) ||
      (d.op == op::attention_probe && c.g.get_integer(n, key::probe) == static_cast<std::int64_t>(probe::top_k));
  const int outputs = two ? 2 : 1;
  if (d.op == op::repeat) return true;  // has a rule of its own
  if (d.outputs.count != outputs) return false;
  if (d.op == op::concatenate) return inputs >= 1;
  if (c.g.find(n, key::expression) != nullptr) return inputs >= fixed;  // lookup tables follow
  return inputs == fixed;
}

constexpr bool places(Context& c, std::int32_t n) {
  const NodeData& d = c.g.nodes[n];
  const bool outside = d.op == op::input || d.op == op::output || d.op == op::state;
  if (outside && d.region != 0) return false;
  return (outside || d.op == op::parameter) ? !c.g.leaf(n).empty() : true;
}

constexpr bool unique_names(Context& c, std::int32_t n) {
  const NodeData& d = c.g.nodes[n];
  const bool source = d.op == op::input || d.op == op::parameter || d.op == op::state;
  if (!source && d.op != op::output) return true;
  for (std::int32_t m = 0; m < n; ++m) {
    const NodeData& e = c.g.nodes[m];
    const bool comparable =
        source ? e.op == op::input || e.op == op::parameter || e.op == op::state : e.op == op::output;
    if (comparable && e.scope == d.scope && e.leaf == d.leaf) return false;
  }
  return true;
}

/// "h.#.attn" stands inside one repeat.
constexpr bool scopes(Context& c, std::int32_t n) {
  if (c.g.nodes[n].op != op::parameter) return true;
  int marks = 0, depth = 0;
  for (char x : c.g.scope(n)) marks += x == '#';
  for (std::int32_t r = c.g.nodes[n].region; r > 0; r = c.g.regions[r].parent) ++depth;
  return marks == depth;
}

constexpr bool same_type(GraphView g, Value a, Value b, bool stacked = false, std::int64_t times = 0) {
  if (g.info(a).dtype != g.info(b).dtype) return false;
  const auto x = g.shape(a), y = g.shape(b);  // y: of one iteration
  const std::size_t extra = stacked ? 1 : 0;
  if (x.size() != y.size() + extra || (stacked && g.dims.constant(x[0]) != times)) return false;
  for (std::size_t i = 0; i < y.size(); ++i)
    if (x[i + extra] != y[i]) return false;
  return true;
}

constexpr bool repeats(Context& c, std::int32_t n) {
  const GraphView g = c.g;
  if (g.nodes[n].op != op::repeat) return true;
  const std::int64_t carried = g.get_integer(n, key::carried), captured = g.get_integer(n, key::captured);
  const std::int64_t states = g.get_integer(n, key::states), sides = g.get_integer(n, key::sides),
                     times = g.get_integer(n, key::times);
  const auto body = static_cast<std::int32_t>(g.get_integer(n, key::region, -1));
  if (times < 1 || carried < 0 || captured < 0 || states < 0 || sides < 0) return false;
  if (body <= 0 || body >= static_cast<std::int32_t>(g.regions.size())) return false;
  const Region& r = g.regions[body];
  if (r.parent != g.nodes[n].region || r.repeat_node != n || !inside(r.results, g.edges)) return false;
  const auto inputs = g.inputs(n);
  const auto results = g.results(body);
  if (static_cast<std::int64_t>(inputs.size()) != carried + captured + states) return false;
  if (static_cast<std::int64_t>(results.size()) != carried + sides + states ||
      g.nodes[n].outputs.count != carried + sides + states)
    return false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Value v = results[i];
    if (v.node < 0 || v.node >= n || v.output < 0 || v.output >= g.nodes[v.node].outputs.count ||
        g.nodes[v.node].region != body)
      return false;
    if (!same_type(g, {n, static_cast<std::int32_t>(i)}, v, static_cast<std::int64_t>(i) >= carried, times))
      return false;
    if (static_cast<std::int64_t>(i) < carried && !same_type(g, inputs[i], v)) return false;
  }
  std::vector<std::int32_t> seen(inputs.size(), -1);
  for (std::int32_t m = 0; m < n; ++m) {
    if (g.nodes[m].region != body || g.nodes[m].op != op::region_input) continue;
    const std::int64_t index = g.get_integer(m, key::index, -1);
    if (index < 0 || index >= static_cast<std::int64_t>(inputs.size()) || seen[index] >= 0) return false;
    seen[index] = m;
    if (inputs[index].node > m) return false;
    if (!same_type(g, inputs[index], {m, 0}, index >= carried + captured, times)) return false;
  }
  for (std::int32_t m : seen)
    if (m < 0) return false;
  return true;
}

/// Every node of a region but the main one stands before the repeat that runs it.
constexpr bool bodies(Context& c, std::int32_t n) {
  const std::int32_t region = c.g.nodes[n].region;
  if (region == 0) return c.g.nodes[n].op != op::region_input;
  const std::int32_t repeat = c.g.regions[region].repeat_node;
  return repeat > n && repeat < c.g.size() && c.g.nodes[repeat].op == op::repeat &&
         c.g.get_integer(repeat, key::region) == region;
}

constexpr bool appends(Context& c, std::int32_t n) {
  if (c.g.nodes[n].op != op::append) return true;
  const Value state = c.g.inputs(n)[0];
  if (!is_state(c.g, state)) return false;
  for (std::int32_t m = 0; m < n; ++m)
    if (c.g.nodes[m].op == op::append && c.g.inputs(m)[0] == state) return false;
  return true;
}

/// The stacked states of a repeat come from states, and go out in the storage that they came in.
constexpr bool state_flow(Context& c, std::int32_t n) {
  if (c.g.nodes[n].op != op::repeat) return true;
  const auto carried = static_cast<std::size_t>(c.g.get_integer(n, key::carried)),
             sides = static_cast<std::size_t>(c.g.get_integer(n, key::sides));
  const auto first = carried + static_cast<std::size_t>(c.g.get_integer(n, key::captured));
  const auto results = c.g.results(static_cast<std::int32_t>(c.g.get_integer(n, key::region)));
  for (std::size_t i = first; i < c.g.inputs(n).size(); ++i) {
    if (!is_state(c.g, c.g.inputs(n)[i])) return false;
    const Value out = results[carried + sides + i - first];
    if (c.g.nodes[out.node].op != op::region_input ||
        c.g.get_integer(out.node, key::index) != static_cast<std::int64_t>(i))
      return false;
  }
  return true;
}

/// Only attention evaluates a mask for batch elements and heads that the mask's own shape does not have.
constexpr bool whole_masks(Context& c, std::int32_t n) {
  const op o = c.g.nodes[n].op;
  if (o != op::mask_to_bias && o != op::select && o != op::dropout) return true;
  const Value m = c.g.inputs(n)[o == op::dropout ? 1 : 0];
  const Attribute* e = c.g.nodes[m.node].op == op::mask ? c.g.find(m.node, key::expression) : nullptr;
  if (e == nullptr) return true;
  const unsigned uses = c.g.scalars[static_cast<int>(e->integer)].uses;
  return ((uses & scalar::uses_b) == 0 || c.g.find(m.node, key::b_len) != nullptr) &&
         ((uses & scalar::uses_h) == 0 || c.g.find(m.node, key::h_len) != nullptr);
}

/// What is applied number by number knows no position and no table.
constexpr bool maps(Context& c, std::int32_t n) {
  if (c.g.nodes[n].op != op::map) return true;
  const Attribute* e = c.g.find(n, key::expression);
  return e != nullptr && (c.g.scalars[static_cast<int>(e->integer)].uses & ~unsigned{scalar::uses_score}) == 0 &&
         c.g.scalars[static_cast<int>(e->integer)].type == scalar::Type::number;
}

constexpr bool dtypes(Context& c, std::int32_t n) {
  switch (c.g.nodes[n].op) {
    case op::positions:
    case op::add:
    case op::multiply:
    case op::scale:
    case op::softcap:
    case op::linear:
    case op::matmul:
    case op::activation:
    case op::map:
    case op::recurrent_attention:
    case op::softmax:
    case op::additive_scores:
    case op::random_features:
    case op::moe:
    case op::log_softmax:
    case op::logsumexp:
    case op::argmax:
    case op::top_k_mask:
    case op::layer_norm:
    case op::rms_norm:
    case op::add_layer_norm:
    case op::add_rms_norm:
    case op::gated_linear:
      for (Value v : c.g.inputs(n))
        if (c.g.info(v).dtype != f32) return false;
      return true;
    case op::dropout:
    case op::pool:
    case op::cross_entropy: return c.g.info(c.g.inputs(n)[0]).dtype == f32;
    case op::attention:
    case op::attention_probe:
    case op::linear_attention:
      for (int i = 0; i < 3; ++i)
        if (c.g.info(c.g.inputs(n)[i]).dtype != f32) return false;
      return true;
    case op::relative_bias:
    case op::rope: return c.g.info(c.g.inputs(n)[0]).dtype == f32;
    case op::append: return c.g.info(c.g.inputs(n)[0]).dtype == c.g.info(c.g.inputs(n)[1]).dtype;
    case op::concatenate:
      for (Value v : c.g.inputs(n))
        if (c.g.info(v).dtype != c.g.info(c.g.inputs(n)[0]).dtype) return false;
      return true;
    default: return true;
  }
}

constexpr bool inferred(Context& c, std::int32_t n) {
  switch (c.g.nodes[n]
              .op) {  // (g++ cannot compare a function with nullptr in constant evaluation under -fsanitize=undefined)
    case op::input:
    case op::parameter:
    case op::state:
    case op::region_input:
    case op::repeat:
    case op::sinusoidal_positions: return true;
    default: break;
  }
  const InferRule infer = rule_of(c.g.nodes[n].op).infer;
  Failure failure;
  const Outputs outputs = infer(c.scratch, spec_of(c.g, n), inputs_of(c.g, n), failure);
  if (failure || outputs.size() != static_cast<std::size_t>(c.g.nodes[n].outputs.count)) return false;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const Value v{n, static_cast<std::int32_t>(o)};
    const auto shape = c.g.shape(v);
    if (outputs[o].dtype != c.g.info(v).dtype || outputs[o].shape.size() != shape.size()) return false;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (outputs[o].shape[i] != shape[i]) return false;
  }
  return true;
}

struct Rule {
  std::string_view sentence;
  bool (*holds)(Context&, std::int32_t);
};

inline constexpr Rule rules[] = {
    {"every index of a node lies inside its table", ranges},
    {"inputs are outputs of nodes that stand above", order},
    {"inputs belong to the node's own region; a repeat hands outer values in", visible},
    {"an attribute stands once, with a value of its key's kind", attribute_kinds},
    {"a node has the inputs and outputs that its op and its has_… attributes announce", arity},
    {"inputs, states and outputs stand in the main region and have names, as parameters do", places},
    {"no two inputs, parameters and states, and no two outputs, share a name", unique_names},
    {"a parameter's scope has one # per repeat around it", scopes},
    {"a body stands above the repeat that runs it", bodies},
    {"a repeat's inputs, outputs and results match its counts and its body, in number and type", repeats},
    {"append writes to a state, and each state is appended to at most once", appends},
    {"a repeat's states are states, handed on in their own storage", state_flow},
    {"mask_to_bias, select and dropout read masks with b_len or h_len if they depend on the batch element or head",
     whole_masks},
    {"a map has a function of its input alone", maps},
    {"arithmetic is on f32; what is joined has one dtype", dtypes},
    {"outputs have the dtype and shape that the op's rule infers", inferred},
};

}  // namespace verifier

/// The first rule that a node of `g` breaks.
constexpr Violation verify(GraphView g) {
  verifier::Context c(g);
  for (const verifier::Rule& r : verifier::rules)
    for (std::int32_t n = 0; n < g.size(); ++n)
      if (!r.holds(c, n)) return {r.sentence, n};
  return {};
}

/// Every node that breaks the first broken rule, as text; empty if all is well.
std::vector<std::string> violations(GraphView g);

}  // namespace treadle

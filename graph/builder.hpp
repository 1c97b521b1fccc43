#pragma once
// The builder: how a model is declared. Works in constant evaluation and at run time.
//
// Functions in ops/ take and return `Node`, a handle to a value of the graph under construction. The first mistake is
// recorded in the graph (so that a test can look at it); what depends on it is skipped, and the compiler reports that
// one mistake.

#include <treadle/graph/graph.hpp>

#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle {

class Builder;

/// A value of the graph under construction.
struct Node {
  Builder* builder = nullptr;
  Value value;
  constexpr bool valid() const { return value.valid(); }
};

/// Short text made in constant evaluation.
struct Text {
  std::vector<char> chars;
  constexpr Text() = default;
  constexpr Text(std::string_view s) { append(s); }
  constexpr Text(const char* s) : Text(std::string_view(s)) {}
  constexpr Text& append(std::string_view s) {
    for (char c : s) chars.push_back(c);
    return *this;
  }
  constexpr Text& append(std::int64_t n) {
    if (n < 0) {
      chars.push_back('-');
      n = -n;
    }
    char digits[20] = {};
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + n % 10);
      n /= 10;
    } while (n != 0);
    while (count > 0) chars.push_back(digits[--count]);
    return *this;
  }
  constexpr std::string_view view() const { return {chars.data(), chars.size()}; }
};

/// A broken rule, before it is known at which node.
struct Failure {
  error_kind kind = error_kind::none;
  Text got, expected;
  constexpr explicit operator bool() const { return kind != error_kind::none; }
};

/// `2*batch*seq + 1`
constexpr void append_dim(Text& t, DimsView dims, StringsView strings, Dim d) {
  const auto terms = dims.terms_of(d);
  if (terms.empty()) t.append("0");
  bool first = true;
  for (const DimTerm& x : terms) {
    if (!first) t.append(" + ");
    first = false;
    bool product = false;
    if (x.coefficient != 1 || x.atoms[0] < 0) {
      t.append(x.coefficient);
      product = true;
    }
    for (int i = max_degree - 1; i >= 0; --i) {
      if (x.atoms[i] < 0) continue;
      if (product) t.append("*");
      product = true;
      const DimAtom& a = dims.atoms[x.atoms[i]];
      if (a.kind == AtomKind::symbol) {
        t.append(strings[a.name]);
        continue;
      }
      t.append(a.kind == AtomKind::ceil_div ? "ceil_div(" : a.kind == AtomKind::min ? "min(" : "max(");
      append_dim(t, dims, strings, a.a);
      t.append(", ");
      append_dim(t, dims, strings, a.b);
      t.append(")");
    }
  }
}
constexpr Text dim_text(const Graph& g, Dim d) {
  Text t;
  append_dim(t, g.dims.view(), g.strings.view(), d);
  return t;
}
constexpr Text shape_text(const Graph& g, const std::vector<Dim>& shape) {
  Text t("[");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i) t.append(", ");
    append_dim(t, g.dims.view(), g.strings.view(), shape[i]);
  }
  t.append("]");
  return t;
}

/// What a repeat's body may ask for beside its carried value.
class Iteration {
 public:
  constexpr Iteration(Builder& b, std::size_t level) : builder_(&b), level_(level) {}
  /// Storage of this iteration that outlives a run: a slice of one stacked tensor [times, shape…].
  constexpr Node state(std::string_view leaf, DType dtype, std::initializer_list<DimSpec> shape);
  /// Hands a value of every iteration out, stacked: [times, shape…].
  constexpr void side(std::string_view name, Node value);

 private:
  Builder* builder_;
  std::size_t level_;
};

struct RepeatResult {
  std::vector<Node> carried;
  std::vector<Node> sides;  ///< in the order of Iteration::side
  constexpr operator Node() const { return carried[0]; }
};

class Builder {
 public:
  constexpr Builder() { g_.regions.push_back({}); }

  // --- the way every node is added (first: clang wants a template's body before its first use in the class) -----
  /// Adds a node. `infer(graph, spec, shapes of the inputs, failure)` is the op's shape rule and gives the outputs.
  template <class Infer>
  constexpr Node add(NodeSpec s, const std::vector<Node>& inputs, Infer infer) {
    if (g_.error) return {this, {}};
    std::vector<OutputSpec> shapes;
    shapes.reserve(inputs.size());
    s.inputs.reserve(inputs.size());
    for (Node x : inputs) {
      if (!x.valid()) return {this, {}};
      const Value v = reach(x.value, regions_.size());
      if (!v.valid()) {
        fail(s.op, g_.strings[s.leaf],
             {error_kind::bad_attribute, "a value from a finished repeat", "one that repeat returned"}, s.line);
        return {this, {}};
      }
      s.inputs.push_back(v);
      shapes.push_back(g_.output_spec(v));
    }
    Failure f;
    s.outputs = infer(g_, s, shapes, f);
    if (f) {
      fail(s.op, g_.strings[s.leaf], f, s.line);
      return {this, {}};
    }
    s.region = region();
    if (s.scope < 0) s.scope = scope();
    return {this, {add_node(g_, s), 0}};
  }

  // --- what a model declares ------------------------------------------------------------------------------
  constexpr Node input(std::string_view leaf, DType dtype, std::initializer_list<DimSpec> shape,
                       std::source_location where = std::source_location::current()) {
    return source(op::input, -1, leaf, dtype, intern(shape), where.line());
  }
  /// Storage that outlives a run; changed only through `append`.
  constexpr Node state(std::string_view leaf, DType dtype, std::initializer_list<DimSpec> shape,
                       std::source_location where = std::source_location::current()) {
    return source(op::state, scope(), leaf, dtype, intern(shape), where.line());
  }
  /// A parameter in the current scope; `leaf` is for example "q.weight".
  constexpr Node parameter(std::string_view leaf, const std::vector<Dim>& shape,
                           std::source_location where = std::source_location::current()) {
    return source(op::parameter, scope(), leaf, f32, shape, where.line());
  }
  constexpr void output(std::string_view leaf, Node x, std::source_location where = std::source_location::current()) {
    has_output_ = true;
    if (!usable(x)) return;
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(g_.nodes.size()); ++n)
      if (g_.nodes[n].op == op::output && g_.strings[g_.nodes[n].leaf] == leaf)
        return fail(op::output, leaf, {error_kind::duplicate_name, leaf, "a name not used before"}, where.line());
    NodeSpec s;
    s.op = op::output;
    s.leaf = g_.strings.intern(leaf);
    s.line = static_cast<std::int32_t>(where.line());
    add(s, {x}, [](Graph&, const NodeSpec&, const std::vector<OutputSpec>& in, Failure&) { return in; });
  }
  /// Checks what can only be known at the end, and gives the graph.
  constexpr Graph finish(std::source_location where = std::source_location::current()) {
    if (!has_output_)
      fail(op::output, "", {error_kind::output_never_set, "no output", "g.output(name, node)"}, where.line());
    check_dims(where.line());
    return std::move(g_);
  }

  // --- what ops are made of -------------------------------------------------------------------------------
  constexpr Graph& graph() { return g_; }
  constexpr Dim intern(const DimSpec& d) { return d.intern(g_.dims, g_.strings); }
  constexpr Dim dim_number(std::int64_t n) { return g_.dims.number(n); }
  constexpr std::vector<Dim> shape(Node x) const {
    if (!x.valid()) return {};
    return g_.shape(x.value);
  }
  constexpr DType dtype(Node x) const { return x.valid() ? g_.info(x.value).dtype : f32; }
  /// Whether work on these nodes makes sense: no mistake so far.
  constexpr bool usable(Node x) const { return x.valid() && !g_.error; }

  constexpr void push_scope(std::string_view leaf) {
    scopes_.push_back(g_.strings.intern(join(scope_text(), leaf).view()));
  }
  constexpr void pop_scope() { scopes_.pop_back(); }
  constexpr std::int32_t scope() const { return scopes_.empty() ? -1 : scopes_.back(); }

  constexpr void fail(op o, std::string_view leaf, const Failure& f, std::uint_least32_t line) {
    if (g_.error) return;
    g_.error.kind = f.kind;
    g_.error.op = o;
    g_.error.leaf = g_.strings.intern(Text(leaf).view());
    g_.error.scope = scope();
    g_.error.got = g_.strings.intern(f.got.view());
    g_.error.expected = g_.strings.intern(f.expected.view());
    g_.error.line = static_cast<std::int32_t>(line);
  }

  // --- repeat ---------------------------------------------------------------------------------------------
  template <class Body>
  constexpr RepeatResult repeat(std::string_view name, std::int64_t times, const std::vector<Node>& carried, Body body,
                                std::uint_least32_t line) {
    RepeatResult r;
    for (std::size_t i = 0; i < carried.size(); ++i) r.carried.push_back({this, {}});
    for (Node x : carried)
      if (!usable(x)) return r;
    if (times < 1) {
      fail(op::repeat, name, {error_kind::bad_attribute, Text().append(times), "at least 1 iteration"}, line);
      return r;
    }
    std::vector<Value> outer;
    for (Node x : carried) outer.push_back(reach(x.value, regions_.size()));

    open(name, times);
    std::vector<Node> inner;
    for (Value v : outer) inner.push_back({this, region_input(v, static_cast<std::int64_t>(inner.size()))});
    regions_.back().carried = static_cast<std::int64_t>(inner.size());
    Iteration iteration(*this, regions_.size());
    const std::vector<Node> results = body(iteration, inner);
    for (std::size_t i = 0; i < results.size() && !g_.error; ++i) {
      if (!results[i].valid()) continue;
      if (shape(results[i]) != shape(inner[i]))
        fail(op::repeat, name,
             {error_kind::carried_shape_changes, shape_text(g_, shape(results[i])), shape_text(g_, shape(inner[i]))},
             line);
    }
    close(name, times, outer, results, r, line);
    return r;
  }

 private:
  friend class Iteration;

  struct Capture {
    Value outer, inner;
  };
  struct OpenRegion {
    std::int32_t id = 0;
    std::int64_t times = 0, carried = 0;
    std::vector<Capture> captures;
    std::vector<Capture> states;
    std::vector<Value> sides;
  };

  Graph g_;
  std::vector<std::int32_t> scopes_;
  std::vector<OpenRegion> regions_;
  bool has_output_ = false;

  constexpr std::int32_t region() const { return regions_.empty() ? 0 : regions_.back().id; }
  constexpr std::string_view scope_text() const { return g_.strings[scope()]; }
  static constexpr Text join(std::string_view a, std::string_view b) {
    Text t(a);
    if (!a.empty()) t.append(".");
    return t.append(b);
  }
  constexpr std::vector<Dim> intern(std::initializer_list<DimSpec> shape) {
    std::vector<Dim> s;
    for (const DimSpec& d : shape) s.push_back(intern(d));
    return s;
  }

  constexpr Node source(op o, std::int32_t scope_id, std::string_view leaf, DType dtype, const std::vector<Dim>& shape,
                        std::uint_least32_t line) {
    if (g_.error) return {this, {}};
    const std::int32_t leaf_id = g_.strings.intern(leaf);
    const NodeData* nodes = g_.nodes.data();  // a plain loop: see Strings::intern
    for (std::size_t i = 0, count = g_.nodes.size(); i < count; ++i) {
      if (nodes[i].leaf == leaf_id && nodes[i].scope == scope_id &&
          (nodes[i].op == op::input || nodes[i].op == op::parameter || nodes[i].op == op::state)) {
        fail(o, leaf, {error_kind::duplicate_name, leaf, "a name not used before"}, line);
        return {this, {}};
      }
    }
    NodeSpec s;
    s.op = o;
    s.region = o == op::parameter ? region() : 0;
    s.scope = scope_id;
    s.leaf = leaf_id;
    s.line = static_cast<std::int32_t>(line);
    s.outputs.push_back({dtype, shape});
    return {this, {add_node(g_, s), 0}};
  }

  constexpr Value region_input(Value outer, std::int64_t index, bool slice = false) {
    NodeSpec s;
    s.op = op::region_input;
    s.region = regions_.back().id;
    s.attributes.push_back(integer(key::index, index));
    OutputSpec o;
    o.dtype = g_.info(outer).dtype;
    const auto from = g_.shape(outer);
    for (std::size_t i = slice ? 1 : 0; i < from.size(); ++i) o.shape.push_back(from[i]);
    s.outputs.push_back(o);
    return {add_node(g_, s), 0};
  }

  /// The value as the region at depth `level` sees it: captured through every repeat in between.
  constexpr Value reach(Value v, std::size_t level) {
    const std::int32_t home = g_.nodes[v.node].region;
    const std::int32_t here = level == 0 ? 0 : regions_[level - 1].id;
    if (home == here) return v;
    if (level == 0) return {};
    const Value outer = reach(v, level - 1);
    if (!outer.valid()) return {};
    for (const Capture& c : regions_[level - 1].captures)
      if (c.outer == outer) return c.inner;
    NodeSpec s;
    s.op = op::region_input;
    s.region = here;
    const auto count = static_cast<std::int64_t>(regions_[level - 1].captures.size());
    s.attributes.push_back(integer(key::index, regions_[level - 1].carried + count));
    OutputSpec o;
    o.dtype = g_.info(outer).dtype;
    for (Dim d : g_.shape(outer)) o.shape.push_back(d);
    s.outputs.push_back(o);
    const Value inner{add_node(g_, s), 0};
    regions_[level - 1].captures.push_back({outer, inner});
    return inner;
  }

  constexpr void open(std::string_view name, std::int64_t times) {
    OpenRegion r;
    r.id = static_cast<std::int32_t>(g_.regions.size());
    r.times = times;
    g_.regions.push_back({region(), -1, {}});
    regions_.push_back(r);
    push_scope(name);
    push_scope("#");
  }

  constexpr void close(std::string_view name, std::int64_t times, const std::vector<Value>& outer,
                       const std::vector<Node>& results, RepeatResult& out, std::uint_least32_t line) {
    const OpenRegion r = regions_.back();
    std::vector<Value> inner_results;
    bool complete = !g_.error;
    for (Node x : results) {
      if (!x.valid()) complete = false;
      if (complete) inner_results.push_back(reach(x.value, regions_.size()));
    }
    // Captures may have been added by the line above.
    const OpenRegion closed = regions_.back();
    regions_.pop_back();
    pop_scope();
    pop_scope();
    if (!complete) return;

    NodeSpec s;
    s.op = op::repeat;
    s.region = region();
    s.scope = scope();
    s.leaf = g_.strings.intern(name);
    s.line = static_cast<std::int32_t>(line);
    for (Value v : outer) s.inputs.push_back(v);
    for (const Capture& c : closed.captures) s.inputs.push_back(c.outer);
    std::int64_t index = closed.carried + static_cast<std::int64_t>(closed.captures.size());
    for (const Capture& c : closed.states) {
      s.inputs.push_back(c.outer);
      g_.attributes[g_.nodes[c.inner.node].attributes.first].integer = index++;
    }
    s.attributes = {integer(key::times, times),
                    integer(key::carried, closed.carried),
                    integer(key::captured, static_cast<std::int64_t>(closed.captures.size())),
                    integer(key::states, static_cast<std::int64_t>(closed.states.size())),
                    integer(key::sides, static_cast<std::int64_t>(closed.sides.size())),
                    integer(key::region, closed.id)};
    for (Value v : closed.sides) inner_results.push_back(v);
    for (const Capture& c : closed.states) inner_results.push_back(c.inner);
    const Range range{static_cast<std::int32_t>(g_.edges.size()), static_cast<std::int32_t>(inner_results.size())};
    for (Value v : inner_results) g_.edges.push_back(v);
    for (std::size_t i = 0; i < inner_results.size(); ++i) {
      OutputSpec o;
      o.dtype = g_.info(inner_results[i]).dtype;
      if (i >= outer.size()) o.shape.push_back(g_.dims.number(times));
      for (Dim d : g_.shape(inner_results[i])) o.shape.push_back(d);
      s.outputs.push_back(o);
    }
    const std::int32_t node = add_node(g_, s);
    g_.regions[closed.id].results = range;
    g_.regions[closed.id].repeat_node = node;
    for (std::size_t i = 0; i < outer.size(); ++i) out.carried[i] = {this, {node, static_cast<std::int32_t>(i)}};
    for (std::size_t i = 0; i < closed.sides.size(); ++i)
      out.sides.push_back({this, {node, static_cast<std::int32_t>(outer.size() + i)}});
  }

  /// The stacked state as the region at depth `level` sees it.
  constexpr Value state_at(std::size_t level, std::string_view leaf, DType dtype, const std::vector<Dim>& shape) {
    if (level == 0) {
      Text scope_name;
      for (char c : scope_text())  // "h.#.attn" names one stacked tensor: "h.attn"
        if (c != '#') scope_name.chars.push_back(c);
      Text clean;
      for (std::size_t i = 0; i < scope_name.chars.size(); ++i) {
        const bool doubled =
            scope_name.chars[i] == '.' && (i + 1 == scope_name.chars.size() || scope_name.chars[i + 1] == '.');
        if (!doubled) clean.chars.push_back(scope_name.chars[i]);
      }
      return source(op::state, clean.chars.empty() ? -1 : g_.strings.intern(clean.view()), leaf, dtype, shape, 0).value;
    }
    std::vector<Dim> stacked;
    stacked.push_back(g_.dims.number(regions_[level - 1].times));
    for (Dim d : shape) stacked.push_back(d);
    const Value outer = state_at(level - 1, leaf, dtype, stacked);
    if (!outer.valid()) return {};
    NodeSpec s;
    s.op = op::region_input;
    s.region = regions_[level - 1].id;
    s.attributes.push_back(integer(key::index, 0));  // set when the repeat is closed
    OutputSpec o;
    o.dtype = dtype;
    o.shape = shape;
    s.outputs.push_back(o);
    const Value inner{add_node(g_, s), 0};
    regions_[level - 1].states.push_back({outer, inner});
    return inner;
  }

  /// Every named dim must be the dim of an input or a state: nothing else could bind it.
  constexpr void check_dims(std::uint_least32_t line) {
    if (g_.error) return;
    std::vector<char> known(g_.dims.atoms.size(), 0);
    for (const NodeData& n : g_.nodes) {
      if (n.op != op::input && n.op != op::state) continue;
      const ValueInfo& v = g_.values[n.outputs.first];
      for (int i = 0; i < v.rank; ++i)
        for (const DimTerm& t : g_.dims.view().terms_of(g_.shapes[v.first_dim + i]))
          for (int a : t.atoms)
            if (a >= 0) known[a] = 1;
    }
    for (std::size_t changed = 1; changed > 0;) {  // operands of known atoms are known
      changed = 0;
      for (std::size_t i = 0; i < known.size(); ++i) {
        const DimAtom& x = g_.dims.atoms[i];
        if (!known[i] || x.kind == AtomKind::symbol) continue;
        for (Dim d : {x.a, x.b})
          for (const DimTerm& t : g_.dims.view().terms_of(d))
            for (int a : t.atoms)
              if (a >= 0 && !known[a]) {
                known[a] = 1;
                ++changed;
              }
      }
    }
    Text names;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (g_.dims.atoms[i].kind != AtomKind::symbol || !known[i]) continue;
      if (!names.chars.empty()) names.append(", ");
      names.append(g_.strings[g_.dims.atoms[i].name]);
    }
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (g_.dims.atoms[i].kind != AtomKind::symbol || known[i]) continue;
      const std::string_view unknown = g_.strings[g_.dims.atoms[i].name];
      const NodeData* user = nullptr;  // the first node whose shape or attribute names it
      for (const NodeData& n : g_.nodes) {
        if (user == nullptr && names_dim(n, static_cast<int>(i))) user = &n;
      }
      if (user == nullptr) continue;
      fail(user->op, g_.strings[user->leaf], {error_kind::unknown_dim, unknown, names}, user->line ? user->line : line);
      return;
    }
  }
  constexpr bool names_dim(const NodeData& n, int atom) const {
    for (int o = 0; o < n.outputs.count; ++o) {
      const ValueInfo& v = g_.values[n.outputs.first + o];
      for (int i = 0; i < v.rank; ++i)
        if (has_atom(g_.shapes[v.first_dim + i], atom)) return true;
    }
    for (int i = 0; i < n.attributes.count; ++i) {
      const Attribute& a = g_.attributes[n.attributes.first + i];
      if (a.kind == AttributeKind::dim && has_atom(static_cast<Dim>(a.integer), atom)) return true;
    }
    return false;
  }
  constexpr bool has_atom(Dim d, int atom) const {
    for (const DimTerm& t : g_.dims.view().terms_of(d))
      for (int a : t.atoms)
        if (a == atom) return true;
    return false;
  }
};

constexpr Node Iteration::state(std::string_view leaf, DType dtype, std::initializer_list<DimSpec> shape) {
  std::vector<Dim> dims;
  for (const DimSpec& d : shape) dims.push_back(builder_->intern(d));
  return {builder_, builder_->state_at(level_, leaf, dtype, dims)};
}

constexpr void Iteration::side(std::string_view, Node value) {
  if (!builder_->usable(value)) return;
  builder_->regions_[level_ - 1].sides.push_back(builder_->reach(value.value, level_));
}

/// Runs `body` `times` times; each iteration has parameters of its own. The body is `Node → Node`, or takes an
/// `Iteration&` first (states, side outputs), or carries several values: `(Iteration&, vector<Node>) → vector<Node>`.
template <class Body>
  requires std::is_invocable_r_v<Node, Body, Node>
constexpr Node repeat(std::string_view name, std::int64_t times, Node x, Body body,
                      std::source_location where = std::source_location::current()) {
  return x.builder->repeat(
      name, times, {x},
      [&](Iteration&, const std::vector<Node>& in) {
        std::vector<Node> out;
        out.push_back(body(in[0]));
        return out;
      },
      where.line());
}

template <class Body>
  requires std::is_invocable_r_v<Node, Body, Iteration&, Node>
constexpr RepeatResult repeat(std::string_view name, std::int64_t times, Node x, Body body,
                              std::source_location where = std::source_location::current()) {
  return x.builder->repeat(
      name, times, {x},
      [&](Iteration& it, const std::vector<Node>& in) {
        std::vector<Node> out;
        out.push_back(body(it, in[0]));
        return out;
      },
      where.line());
}

template <class Body>
constexpr RepeatResult repeat(std::string_view name, std::int64_t times, const std::vector<Node>& carried, Body body,
                              std::source_location where = std::source_location::current()) {
  return carried[0].builder->repeat(name, times, carried, body, where.line());
}

}  // namespace treadle

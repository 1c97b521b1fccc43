// Parsing of graphs: recursive descent over the text that text.cpp prints.

#include <treadle/graph/text.hpp>

#include <treadle/graph/scalar/parse.hpp>
#include <treadle/graph/tensor.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

namespace treadle {
namespace {

/// The kind of value that a key holds (graph/op.hpp says so in its comments).
AttributeKind kind_of(key k) {
  switch (k) {
    case key::factor:
    case key::scale:
    case key::eps:
    case key::base:
    case key::value:
    case key::p:
    case key::alpha:
    case key::low:
    case key::high:
    case key::magnitude: return AttributeKind::number;
    case key::begin:
    case key::length:
    case key::offset:
    case key::b_len:
    case key::h_len:
    case key::q_len:
    case key::k_len: return AttributeKind::dim;
    case key::expression: return AttributeKind::scalar;
    default: return AttributeKind::integer;
  }
}

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Graph run() {
    g_.regions.push_back({});
    while (skip(), at_ < text_.size()) node(0);
    return std::move(g_);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  Graph g_;
  std::map<std::int64_t, std::int32_t> nodes_;  ///< number in the text → node

  [[noreturn]] void fail(const std::string& wrong, const std::string& right) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size())), '\n');
    throw std::invalid_argument("line " + std::to_string(line) + ": " + wrong + "; expected " + right);
  }
  std::string next_word() const {
    if (at_ >= text_.size()) return "the end of the text";
    std::size_t end = at_ + 1;
    while (end < text_.size() && end < at_ + 24 && (letter(text_[end]) || digit(text_[end]))) ++end;
    return "'" + std::string(text_.substr(at_, end - at_)) + "'";
  }
  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* where) {
    if (!accept(c)) fail(next_word(), std::string("'") + c + "' " + where);
  }
  std::string_view word(const char* what) {
    skip();
    std::size_t end = at_;
    if (end < text_.size() && letter(text_[end]))
      while (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) ++end;
    if (end == at_) fail(next_word(), what);
    const std::string_view w = text_.substr(at_, end - at_);
    at_ = end;
    return w;
  }
  bool accept_word(std::string_view w) {
    skip();
    if (text_.substr(at_, w.size()) != w) return false;
    const std::size_t end = at_ + w.size();
    if (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) return false;
    at_ = end;
    return true;
  }
  std::int64_t integer_literal(const char* what) {
    skip();
    std::int64_t v = 0;
    const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (r.ec != std::errc{}) fail(next_word(), what);
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    return v;
  }
  double number_literal() {
    skip();
    double v = 0;
    const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (r.ec != std::errc{}) fail(next_word(), "a number such as 0.125, 1e-05 or -inf");
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    return v;
  }
  std::string string_literal() {
    std::string s;
    expect('"', "before a name");
    for (;;) {
      if (at_ >= text_.size() || text_[at_] == '\n') fail("a name without an end", "'\"' on the same line");
      const char c = text_[at_++];
      if (c == '"') return s;
      if (c == '\\' && at_ < text_.size()) {
        const char e = text_[at_++];
        s += e == 'n' ? '\n' : e;
      } else {
        s += c;
      }
    }
  }

  // dims: sum of products of numbers, names and functions
  int degree(Dim d) const {
    int most = 0;
    for (const DimTerm& t : g_.dims.view().terms_of(d))
      most =
          std::max(most, static_cast<int>(std::count_if(t.atoms.begin(), t.atoms.end(), [](int a) { return a >= 0; })));
    return most;
  }
  Dim factor(int depth) {
    if (depth > 32) fail("a dim that is nested too deeply", "at most 32 levels");
    const char c = peek();
    if (digit(c)) return g_.dims.number(integer_literal("a number"));
    if (c == '"') return g_.dims.symbol(g_.strings.intern(string_literal()));
    if (accept('(')) {
      const Dim d = dim(depth + 1);
      expect(')', "after a dim");
      return d;
    }
    const std::string_view w = word("a dim: a number, a name, ceil_div(a, b), min(a, b) or max(a, b)");
    if (w != "ceil_div" && w != "min" && w != "max") return g_.dims.symbol(g_.strings.intern(w));
    expect('(', "after the name of a dim function");
    const Dim a = dim(depth + 1);
    expect(',', "between two dims");
    const Dim b = dim(depth + 1);
    expect(')', "after two dims");
    return w == "ceil_div" ? g_.dims.ceil_div(a, b) : w == "min" ? g_.dims.min(a, b) : g_.dims.max(a, b);
  }
  Dim product(int depth) {
    Dim d = factor(depth);
    while (accept('*')) {
      const Dim f = factor(depth);
      if (degree(d) + degree(f) > max_degree)
        fail("a product of too many dims", "at most " + std::to_string(max_degree));
      d = g_.dims.multiply(d, f);
    }
    return d;
  }
  Dim dim(int depth = 0) {
    const bool negative = accept('-');
    Dim d = product(depth);
    if (negative) d = g_.dims.times(d, -1);
    for (;;) {
      if (accept('+')) {
        d = g_.dims.add(d, product(depth));
      } else if (accept('-')) {
        d = g_.dims.subtract(d, product(depth));
      } else {
        return d;
      }
    }
  }

  OutputSpec type() {
    OutputSpec o;
    const std::string_view w = word("a type: f32, f64, i32, i64 or bool");
    bool known = false;
    for (DType t : {f32, f64, i32, i64, boolean})
      if (name(t) == w) {
        o.dtype = t;
        known = true;
      }
    if (!known) fail("unknown type '" + std::string(w) + "'", "f32, f64, i32, i64 or bool");
    expect('[', "before a shape");
    if (accept(']')) return o;
    do o.shape.push_back(dim());
    while (accept(','));
    expect(']', "after a shape");
    return o;
  }
  Value value() {
    expect('%', "before the number of a node");
    Value v;
    const std::int64_t number = integer_literal("the number of a node");
    const auto found = nodes_.find(number);
    if (found == nodes_.end())
      fail("node %" + std::to_string(number) + " is not defined yet", "a node that stands above");
    v.node = found->second;
    if (accept('#')) v.output = static_cast<std::int32_t>(integer_literal("the number of an output"));
    const int outputs = g_.nodes[v.node].outputs.count;
    if (v.output < 0 || v.output >= outputs)
      fail("output " + std::to_string(v.output) + " of %" + std::to_string(number),
           "less than " + std::to_string(outputs));
    return v;
  }
  std::vector<Value> list() {
    std::vector<Value> values;
    expect('(', "before the inputs");
    if (accept(')')) return values;
    do values.push_back(value());
    while (accept(','));
    expect(')', "after the inputs");
    return values;
  }
  std::vector<std::int64_t> integers() {
    std::vector<std::int64_t> values;
    expect('[', "before a list of integers");
    if (accept(']')) return values;
    do values.push_back(integer_literal("an integer"));
    while (accept(','));
    expect(']', "after a list of integers");
    return values;
  }
  Attribute attribute(op o, std::int32_t region) {
    const std::string_view w = word("the name of an attribute");
    std::optional<key> k;
    for (int i = 0; i < key_count; ++i)
      if (key_names[i] == w) k = static_cast<key>(i);
    if (!k || *k == key::region) fail("unknown attribute '" + std::string(w) + "'", "one of those in graph/op.hpp");
    expect('=', "after the name of an attribute");
    if (*k == key::data) return numbers();
    if (peek() == '[') {
      const std::vector<std::int64_t> values = integers();
      if (*k == key::perm) {
        std::int64_t code = 0, place = 1;
        for (std::int64_t axis : values) {
          if (axis < 0 || axis > 7 || values.size() > max_rank)
            fail("axis " + std::to_string(axis), "up to 6 axes from 0 to 5");
          code += place * axis;
          place *= 8;
        }
        return integer(*k, code);
      }
      const std::int64_t times = times_[region];
      if (static_cast<std::int64_t>(values.size()) != times)
        fail(std::to_string(values.size()) + " integers", std::to_string(times) + ", one per iteration of the repeat");
      const auto first = static_cast<std::int64_t>(g_.tables.size());
      g_.tables.insert(g_.tables.end(), values.begin(), values.end());
      return {*k, AttributeKind::table, first, 0};
    }
    switch (kind_of(*k)) {
      case AttributeKind::number: return number(*k, number_literal());
      case AttributeKind::dim: return dim_attribute(*k, dim());
      case AttributeKind::scalar: return scalar_attribute(*k, expression(o));
      default: break;
    }
    if (*k == key::function) return {*k, AttributeKind::integer, one_of(activation_names, "activation"), 0};
    if (*k == key::reduction) return {*k, AttributeKind::integer, one_of(reduction_names, "reduction"), 0};
    if (*k == key::layout) return {*k, AttributeKind::integer, one_of(rope_layout_names, "layout"), 0};
    if (*k == key::scaling) return {*k, AttributeKind::integer, one_of(rope_scaling_names, "scaling"), 0};
    if (*k == key::probe) return {*k, AttributeKind::integer, one_of(probe_names, "probe"), 0};
    return integer(*k, integer_literal("an integer"));
  }
  /// `[0.5, -inf, 3]`: the numbers of a constant, into the graph's tables.
  Attribute numbers() {
    const auto first = static_cast<std::int64_t>(g_.tables.size());
    expect('[', "before a list of numbers");
    if (!accept(']')) {
      do g_.tables.push_back(std::bit_cast<std::int64_t>(number_literal()));
      while (accept(','));
      expect(']', "after a list of numbers");
    }
    return data_attribute(key::data, first, static_cast<std::int64_t>(g_.tables.size()) - first);
  }
  std::int64_t one_of(std::span<const std::string_view> names, const char* what) {
    const std::string_view w = word(what);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == w) return static_cast<std::int64_t>(i);
    fail("unknown " + std::string(what) + " '" + std::string(w) + "'", "one of those in graph/op.hpp");
  }
  std::int32_t expression(op o) {
    expect('`', "before an expression");
    const std::size_t end = text_.find('`', at_);
    if (end == std::string_view::npos) fail("an expression without an end", "'`'");
    const scalar::Parsed parsed = scalar::parse(g_.scalars, text_.substr(at_, end - at_),
                                                o == op::mask ? scalar::Type::boolean : scalar::Type::number);
    if (!parsed) {
      at_ += parsed.error.position;
      fail("an expression that cannot be read at " + next_word() + ": " + parsed.error.what,
           "an expression such as `k <= q`");
    }
    at_ = end + 1;
    return parsed.root;
  }

  std::map<std::int32_t, std::int64_t> times_;  ///< region → iterations

  void node(std::int32_t region) {
    expect('%', "before the number of a node");
    const std::int64_t number = integer_literal("the number of a node");
    if (nodes_.count(number) != 0) fail("node %" + std::to_string(number) + " is defined twice", "a new number");
    expect('=', "after the number of a node");
    NodeSpec s;
    s.region = region;
    const std::string_view w = word("the name of an op");
    const auto known = std::find(std::begin(op_names), std::end(op_names), w);
    if (known == std::end(op_names)) fail("unknown op '" + std::string(w) + "'", "one of those in graph/op.hpp");
    s.op = static_cast<op>(known - std::begin(op_names));
    if (peek() == '"') {
      const std::string first = string_literal();
      if (peek() == '"') {
        if (!first.empty()) s.scope = g_.strings.intern(first);
        const std::string leaf = string_literal();
        if (!leaf.empty()) s.leaf = g_.strings.intern(leaf);
      } else {
        s.leaf = g_.strings.intern(first);
      }
    }
    s.inputs = list();
    if (accept('{')) {
      do s.attributes.push_back(attribute(s.op, region));
      while (accept(','));
      expect('}', "after the attributes");
    }
    Range results;
    std::int32_t body = -1;
    if (s.op == op::repeat) {
      if (!accept_word("region")) fail(next_word(), "'region {' with the body of the repeat");
      body = static_cast<std::int32_t>(g_.regions.size());
      g_.regions.push_back({region, -1, {}});
      s.attributes.push_back(integer(key::region, body));
      times_[body] = 0;
      for (const Attribute& a : s.attributes)
        if (a.key == key::times) times_[body] = a.integer;
      expect('{', "before the body of a repeat");
      while (peek() == '%') node(body);
      if (!accept_word("results")) fail(next_word(), "a node, or 'results (…)' at the end of the body");
      const std::vector<Value> values = list();
      results = {static_cast<std::int32_t>(g_.edges.size()), static_cast<std::int32_t>(values.size())};
      g_.edges.insert(g_.edges.end(), values.begin(), values.end());
      expect('}', "after the results of a body");
    }
    if (accept(':')) {
      do s.outputs.push_back(type());
      while (accept(','));
    }
    const std::int32_t n = add_node(g_, s);
    nodes_[number] = n;
    if (body >= 0) {
      g_.regions[body].results = results;
      g_.regions[body].repeat_node = n;
    }
  }
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser(text).run(); }

}  // namespace treadle

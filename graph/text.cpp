// Printing of graphs (text.hpp); parse.cpp reads what this writes.

#include <treadle/graph/text.hpp>

#include <treadle/graph/scalar/print.hpp>

#include <algorithm>
#include <charconv>
#include <vector>

namespace treadle {
namespace {

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool is_identifier(std::string_view s) {
  if (s.empty() || !letter(s[0]) || s == "ceil_div" || s == "min" || s == "max") return false;
  return std::all_of(s.begin(), s.end(), [](char c) { return letter(c) || digit(c); });
}

std::string quoted(std::string_view s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '\n') {
      r += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') r += '\\';
    r += c;
  }
  return r + '"';
}

std::string number_text(double v) {
  char buffer[32];
  const auto r = std::to_chars(buffer, buffer + sizeof buffer, v);
  return {buffer, r.ptr};
}

/// The iterations of the repeat that encloses a node, which is how long its per-iteration attributes are.
std::int64_t times_around(GraphView g, std::int32_t region) {
  const std::int32_t repeat = g.regions[region].repeat_node;
  return repeat < 0 ? 0 : g.get_integer(repeat, key::times);
}

std::string atom_text(GraphView g, const DimAtom& a) {
  if (a.kind == AtomKind::symbol) {
    const std::string_view name = g.strings[a.name];
    return is_identifier(name) ? std::string(name) : quoted(name);
  }
  std::string x = to_text(g, a.a), y = to_text(g, a.b);
  if (a.kind != AtomKind::ceil_div && y < x) std::swap(x, y);
  const char* function = a.kind == AtomKind::ceil_div ? "ceil_div" : a.kind == AtomKind::min ? "min" : "max";
  return function + ("(" + x) + ", " + y + ")";
}

std::int32_t body_of(GraphView g, std::int32_t n) {
  return g.nodes[n].op == op::repeat ? static_cast<std::int32_t>(g.get_integer(n, key::region, -1)) : -1;
}

void enumerate(GraphView g, std::int32_t region, std::vector<std::int32_t>& numbers, std::int32_t& next) {
  for (std::int32_t n = 0; n < g.size(); ++n) {
    if (g.nodes[n].region != region) continue;
    if (body_of(g, n) >= 0) enumerate(g, body_of(g, n), numbers, next);
    numbers[n] = next++;
  }
}

class Printer {
 public:
  explicit Printer(GraphView g) : g_(g), number_(text_numbers(g)), members_(g.regions.size()) {
    for (std::int32_t n = 0; n < g.size(); ++n) members_[g.nodes[n].region].push_back(n);
  }
  std::string run() {
    region(0, "");
    return std::move(out_);
  }

 private:
  GraphView g_;
  std::vector<std::int32_t> number_;
  std::vector<std::vector<std::int32_t>> members_;  ///< nodes of each region
  std::string out_;

  std::int32_t body(std::int32_t n) const { return body_of(g_, n); }
  std::string value(Value v) const {
    std::string s = "%" + std::to_string(number_[v.node]);
    if (v.output != 0) s += "#" + std::to_string(v.output);
    return s;
  }
  std::string list(std::span<const Value> values) const {
    std::string s = "(";
    for (std::size_t i = 0; i < values.size(); ++i) s += (i ? ", " : "") + value(values[i]);
    return s + ")";
  }
  std::string attribute(std::int32_t n, const Attribute& a) const {
    const std::string text = to_text(g_, n, a);
    return std::string(name(a.key)) + "=" + (a.kind == AttributeKind::scalar ? "`" + text + "`" : text);
  }
  void node(std::int32_t n, const std::string& indent) {
    const NodeData& d = g_.nodes[n];
    out_ += indent + "%" + std::to_string(number_[n]) + " = " + node_name(g_, n) + " " + list(g_.inputs(n));
    std::string attributes;
    for (const Attribute& a : g_.attributes_of(n))
      if (a.key != key::region) attributes += (attributes.empty() ? "" : ", ") + attribute(n, a);
    if (!attributes.empty()) out_ += " {" + attributes + "}";
    if (body(n) >= 0) {
      out_ += " region {\n";
      region(body(n), indent + "  ");
      out_ += indent + "  results " + list(g_.results(body(n))) + "\n" + indent + "}";
    }
    for (int i = 0; i < d.outputs.count; ++i) out_ += (i ? ", " : " : ") + to_text(g_, Value{n, i});
    out_ += "\n";
  }
  void region(std::int32_t r, const std::string& indent) {
    for (std::int32_t n : members_[r]) node(n, indent);
  }
};

}  // namespace

std::string to_text(GraphView g, Dim d) {
  struct Term {
    std::vector<std::string> atoms;
    std::int64_t coefficient;
  };
  std::vector<Term> terms;
  for (const DimTerm& t : g.dims.terms_of(d)) {
    Term x{{}, t.coefficient};
    for (int a : t.atoms)
      if (a >= 0) x.atoms.push_back(atom_text(g, g.dims.atoms[a]));
    std::sort(x.atoms.begin(), x.atoms.end());
    terms.push_back(std::move(x));
  }
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size();
    return a.atoms < b.atoms;
  });
  std::string s;
  for (const Term& t : terms) {
    const bool negative = t.coefficient < 0;
    s += s.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    const auto size =
        negative ? 0 - static_cast<std::uint64_t>(t.coefficient) : static_cast<std::uint64_t>(t.coefficient);
    if (size != 1 || t.atoms.empty()) s += std::to_string(size) + (t.atoms.empty() ? "" : "*");
    for (std::size_t i = 0; i < t.atoms.size(); ++i) s += (i ? "*" : "") + t.atoms[i];
  }
  return s.empty() ? "0" : s;
}

std::string to_text(GraphView g, std::int32_t n, const Attribute& a) {
  if (a.kind == AttributeKind::table) {
    const std::int64_t count = times_around(g, g.nodes[n].region);
    std::string s = "[";
    for (std::int64_t i = 0; i < count; ++i) s += (i ? ", " : "") + std::to_string(g.tables[a.integer + i]);
    return s + "]";
  }
  if (a.kind == AttributeKind::data) {
    std::string s = "[";
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(a.number); ++i)
      s += (i ? ", " : "") + number_text(g.constant_element(n, i));
    return s + "]";
  }
  if (a.kind == AttributeKind::number) return number_text(a.number);
  if (a.kind == AttributeKind::dim) return to_text(g, static_cast<Dim>(a.integer));
  if (a.kind == AttributeKind::scalar) return scalar::print(g.scalars, static_cast<int>(a.integer));
  if (a.key == key::function && a.integer >= 0 && a.integer < activation_count)
    return std::string(name(static_cast<activation>(a.integer)));
  if (a.key == key::layout && a.integer >= 0 && a.integer < static_cast<std::int64_t>(std::size(rope_layout_names)))
    return std::string(name(static_cast<rope_layout>(a.integer)));
  const auto one_of = [&](std::span<const std::string_view> names) {
    return a.integer >= 0 && a.integer < static_cast<std::int64_t>(names.size());
  };
  if (a.key == key::scaling && one_of(rope_scaling_names))
    return std::string(name(static_cast<rope_scaling>(a.integer)));
  if (a.key == key::probe && one_of(probe_names)) return std::string(name(static_cast<probe>(a.integer)));
  if (a.key == key::reduction && a.integer >= 0 && a.integer < reduction_count)
    return std::string(name(static_cast<reduction>(a.integer)));
  if (a.key == key::perm) {
    const int rank = g.inputs(n).empty() ? 0 : g.info(g.inputs(n)[0]).rank;
    std::int64_t code = a.integer;
    std::string s = "[";
    for (int i = 0; i < rank; ++i, code /= 8) s += (i ? ", " : "") + std::to_string(code % 8);
    return s + "]";
  }
  return std::to_string(a.integer);
}

std::vector<std::int32_t> text_numbers(GraphView g) {
  std::vector<std::int32_t> numbers(g.nodes.size(), -1);
  std::int32_t next = 0;
  enumerate(g, 0, numbers, next);
  return numbers;
}

std::string to_text(GraphView g, Value v) {
  std::string s = std::string(name(g.info(v).dtype)) + "[";
  const auto shape = g.shape(v);
  for (std::size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + to_text(g, shape[i]);
  return s + "]";
}

std::string dotted_name(GraphView g, std::int32_t n) {
  std::string s(g.scope(n));
  if (!s.empty() && !g.leaf(n).empty()) s += ".";
  return s += g.leaf(n);
}

std::string node_name(GraphView g, std::int32_t n) {
  std::string s(name(g.nodes[n].op));
  if (!g.scope(n).empty()) return s + " " + quoted(g.scope(n)) + " " + quoted(g.leaf(n));
  return g.leaf(n).empty() ? s : s + " " + quoted(g.leaf(n));
}

std::string to_text(GraphView g) { return Printer(g).run(); }

}  // namespace treadle

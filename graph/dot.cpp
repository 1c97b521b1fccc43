#include <treadle/graph/dot.hpp>

#include <treadle/graph/text.hpp>

#include <vector>

namespace treadle {
namespace {

/// Between quotes. A backslash is doubled: labels would read \N as the node's name and \l as an alignment.
std::string quoted(std::string_view s) {
  std::string r = "\"";
  for (const char c : s) {
    if (c == '\n') {
      r += "\\n";
      continue;
    }
    if (c == '\r' || c == '\0') continue;  // the first shows nothing, the second ends a string
    if (c == '"' || c == '\\') r += '\\';
    r += c;
  }
  return r + '"';
}

std::string_view colour(op o) {
  switch (o) {
    case op::input:
    case op::output:
    case op::region_input: return "#d6e6f5";
    case op::parameter:
    case op::constant:
    case op::state: return "#e6e6e6";
    case op::repeat: return "#e4dcf2";
    case op::mask:
    case op::mask_to_bias:
    case op::select: return "#f7efc4";
    case op::attention:
    case op::attention_probe:
    case op::linear_attention:
    case op::recurrent_attention: return "#f8d9b8";
    default: return "#ffffff";
  }
}

class Writer {
 public:
  explicit Writer(GraphView g) : g_(g), number_(text_numbers(g)), members_(g.regions.size()) {
    std::vector<std::int32_t> node(g.nodes.size());
    for (std::int32_t n = 0; n < g.size(); ++n) node[static_cast<std::size_t>(number_[n])] = n;
    for (const std::int32_t n : node) members_[g.nodes[n].region].push_back(n);
  }

  std::string run(std::string_view title) {
    out_ = "digraph treadle {\n";
    if (!title.empty()) out_ += "  label=" + quoted(title) + "; labelloc=t;\n";
    out_ +=
        "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9];\n";
    boxes(0, "  ");
    arrows(0);
    return out_ + "}\n";
  }

 private:
  GraphView g_;
  std::vector<std::int32_t> number_;
  std::vector<std::vector<std::int32_t>> members_;  ///< nodes of each region, in the order of the text
  std::string out_;

  std::string id(std::int32_t n) const { return "n" + std::to_string(number_[static_cast<std::size_t>(n)]); }
  std::int32_t body(std::int32_t n) const {
    return g_.nodes[n].op == op::repeat ? static_cast<std::int32_t>(g_.get_integer(n, key::region, -1)) : -1;
  }

  void boxes(std::int32_t region, const std::string& indent) {
    for (const std::int32_t n : members_[region]) {
      if (body(n) >= 0) {
        out_ += indent + "subgraph cluster_" + std::to_string(body(n)) + " {\n";
        out_ += indent +
                "  label=" + quoted(dotted_name(g_, n) + " × " + std::to_string(g_.get_integer(n, key::times))) + ";\n";
        boxes(body(n), indent + "  ");
        out_ += indent + "}\n";
      }
      out_ += indent + id(n) + " [label=" + quoted(label(n)) + ", fillcolor=\"" + std::string(colour(g_.nodes[n].op)) +
              "\"];\n";
    }
  }

  /// A constant's numbers only where they are few.
  std::string value(std::int32_t n, const Attribute& a) const {
    if (a.kind == AttributeKind::data && a.number > 8)
      return std::to_string(static_cast<std::int64_t>(a.number)) + " numbers";
    return to_text(g_, n, a);
  }

  std::string label(std::int32_t n) const {
    std::string s(name(g_.nodes[n].op));
    if (const std::string where = dotted_name(g_, n); !where.empty()) s += " " + where;
    for (const Attribute& a : g_.attributes_of(n))
      if (a.key != key::region) s += "\n" + std::string(name(a.key)) + " = " + value(n, a);
    for (std::int32_t o = 0; o < g_.nodes[n].outputs.count; ++o)
      s += "\n" + (g_.nodes[n].outputs.count > 1 ? "#" + std::to_string(o) + " " : "") + to_text(g_, Value{n, o});
    return s;
  }

  void arrow(Value from, std::int32_t to, const std::string& more = {}) {
    std::string style = from.output == 0 ? "" : "label=\"#" + std::to_string(from.output) + "\"";
    if (!more.empty()) style += (style.empty() ? "" : ", ") + more;
    out_ += "  " + id(from.node) + " -> " + id(to) + (style.empty() ? "" : " [" + style + "]") + ";\n";
  }

  void arrows(std::int32_t region) {
    for (const std::int32_t n : members_[region]) {
      const auto inputs = g_.inputs(n);
      if (body(n) < 0) {
        for (const Value v : inputs) arrow(v, n);
        continue;
      }
      // By index; a body without one (no valid graph) leaves the repeat itself.
      std::vector<std::int32_t> entry(inputs.size(), n);
      for (const std::int32_t m : members_[body(n)])
        if (const auto i = g_.get_integer(m, key::index, -1);
            g_.nodes[m].op == op::region_input && i >= 0 && i < static_cast<std::int64_t>(entry.size()))
          entry[static_cast<std::size_t>(i)] = m;
      for (std::size_t i = 0; i < inputs.size(); ++i) arrow(inputs[i], entry[i]);
      arrows(body(n));
      const auto results = g_.results(body(n));
      const auto carried = static_cast<std::size_t>(g_.get_integer(n, key::carried));
      for (std::size_t i = 0; i < results.size(); ++i) {
        arrow(results[i], n);
        if (i < carried && i < entry.size()) arrow(results[i], entry[i], "style=dashed, constraint=false");
      }
    }
  }
};

}  // namespace

std::string to_dot(GraphView g, std::string_view title) { return Writer(g).run(title); }

}  // namespace treadle

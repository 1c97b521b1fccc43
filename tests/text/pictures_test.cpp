// DOT and JSON hold every node, edge and region of a graph, whatever its names are.

#include <treadle/graph/builder.hpp>
#include <treadle/graph/dot.hpp>
#include <treadle/graph/json.hpp>
#include <treadle/graph/random.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

using namespace treadle;
using Json = nlohmann::json;

namespace {

/// Reads what DOT's grammar allows of what is written here: statements of nodes, edges, attributes and subgraphs.
class Dot {
 public:
  using Attributes = std::map<std::string, std::string>;
  struct Edge {
    std::string from, to;
    Attributes attributes;
  };
  std::map<std::string, Attributes> nodes;
  std::map<std::string, std::string> cluster;  ///< innermost, of each node
  std::map<std::string, std::string> parent;   ///< of each cluster
  std::map<std::string, Attributes> graphs;    ///< attributes of clusters; "": the picture
  std::vector<Edge> edges;

  explicit Dot(std::string_view text) : text_(text) {
    expect("digraph");
    name();
    block("");
    if (!peek().empty()) fail("the end");
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("expected " + what + " at: " + std::string(text_.substr(at_, 40)));
  }
  std::string_view peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ == text_.size()) return {};
    std::size_t end = at_ + 1;
    const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    if (text_[at_] == '"') {
      for (; end < text_.size() && text_[end] != '"'; ++end)
        if (text_[end] == '\\') ++end;
      if (end >= text_.size()) fail("a closing quote");
      ++end;
    } else if (text_.substr(at_, 2) == "->") {
      ++end;
    } else if (word(text_[at_])) {
      while (end < text_.size() && word(text_[end])) ++end;
    }
    return text_.substr(at_, end - at_);
  }
  std::string take() {
    const std::string token(peek());
    at_ += token.size();
    return token;
  }
  void expect(std::string_view token) {
    if (peek() != token) fail(std::string(token));
    take();
  }
  bool accept(std::string_view token) {
    if (peek() != token) return false;
    take();
    return true;
  }
  /// An identifier or a quoted string; `\n` of a label is a new line.
  std::string name() {
    const std::string token = take();
    if (token.empty() || (token[0] != '"' && std::isalnum(static_cast<unsigned char>(token[0])) == 0)) fail("a name");
    if (token[0] != '"') return token;
    std::string s;
    for (std::size_t i = 1; i + 1 < token.size(); ++i) {
      if (token[i] == '\n') fail("no line end in a string");
      if (token[i] != '\\') {
        s += token[i];
        continue;
      }
      ++i;
      if (token[i] != 'n' && token[i] != '"' && token[i] != '\\') fail("an escape that stands for itself");
      s += token[i] == 'n' ? '\n' : token[i];
    }
    return s;
  }
  Attributes attributes() {
    Attributes a;
    if (!accept("[")) return a;
    do {
      const std::string key = name();
      expect("=");
      a[key] = name();
    } while (accept(","));
    expect("]");
    return a;
  }
  void block(const std::string& where) {
    expect("{");
    while (!accept("}")) {
      if (accept("subgraph")) {
        const std::string inner = name();
        parent[inner] = where;
        block(inner);
        continue;
      }
      const std::string first = name();
      if (accept("=")) {
        graphs[where][first] = name();
      } else if (accept("->")) {
        const std::string to = name();
        edges.push_back({first, to, attributes()});
      } else {
        const Attributes a = attributes();
        if (first != "node" && first != "edge") {
          if (nodes.contains(first)) fail("one box a node");
          nodes[first] = a;
          cluster[first] = where;
        }
      }
      accept(";");
    }
  }
};

using Arrow = std::tuple<std::string, std::string, std::int32_t, bool>;  ///< from, to, output, dashed

/// The arrows that the picture of a valid graph has.
std::vector<Arrow> arrows_of(GraphView g) {
  const auto number = text_numbers(g);
  const auto id = [&](std::int32_t n) { return "n" + std::to_string(number[static_cast<std::size_t>(n)]); };
  std::vector<Arrow> arrows;
  for (std::int32_t n = 0; n < g.size(); ++n) {
    if (g.nodes[n].op != op::repeat) {
      for (const Value v : g.inputs(n)) arrows.emplace_back(id(v.node), id(n), v.output, false);
      continue;
    }
    const auto region = static_cast<std::int32_t>(g.get_integer(n, key::region));
    std::map<std::int64_t, std::string> entry;
    for (std::int32_t m = 0; m < g.size(); ++m)
      if (g.nodes[m].region == region && g.nodes[m].op == op::region_input) entry[g.get_integer(m, key::index)] = id(m);
    for (std::size_t i = 0; i < g.inputs(n).size(); ++i)
      arrows.emplace_back(id(g.inputs(n)[i].node), entry.at(static_cast<std::int64_t>(i)), g.inputs(n)[i].output,
                          false);
    for (std::size_t i = 0; i < g.results(region).size(); ++i) {
      const Value v = g.results(region)[i];
      arrows.emplace_back(id(v.node), id(n), v.output, false);
      if (static_cast<std::int64_t>(i) < g.get_integer(n, key::carried))
        arrows.emplace_back(id(v.node), entry.at(static_cast<std::int64_t>(i)), v.output, true);
    }
  }
  std::sort(arrows.begin(), arrows.end());
  return arrows;
}

void check_dot(GraphView g) {
  const std::string text = to_dot(g, "a \"title\"");
  BOOST_TEST(to_dot(g, "a \"title\"") == text);
  const Dot dot(text);
  BOOST_TEST(dot.graphs.at("").at("label") == "a \"title\"");
  const auto number = text_numbers(g);
  BOOST_TEST_REQUIRE(dot.nodes.size() == g.nodes.size());
  BOOST_TEST(dot.parent.size() + 1 == g.regions.size());
  const auto cluster = [](std::int32_t region) { return region <= 0 ? "" : "cluster_" + std::to_string(region); };
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const std::string id = "n" + std::to_string(number[static_cast<std::size_t>(n)]);
    BOOST_TEST_REQUIRE(dot.nodes.contains(id));
    const std::string& label = dot.nodes.at(id).at("label");
    std::string first(name(g.nodes[n].op));
    if (!dotted_name(g, n).empty()) first += " " + dotted_name(g, n);
    BOOST_TEST(label.rfind(first, 0) == 0u, label);
    for (int o = 0; o < g.nodes[n].outputs.count; ++o)
      BOOST_TEST(label.find(to_text(g, Value{n, o})) != std::string::npos);
    BOOST_TEST(dot.cluster.at(id) == cluster(g.nodes[n].region));
  }
  for (std::int32_t r = 1; r < static_cast<std::int32_t>(g.regions.size()); ++r)
    BOOST_TEST(dot.parent.at(cluster(r)) == cluster(g.regions[r].parent));
  std::vector<Arrow> found;
  for (const Dot::Edge& e : dot.edges) {
    const auto label = e.attributes.find("label");
    found.emplace_back(e.from, e.to, label == e.attributes.end() ? 0 : std::stoi(label->second.substr(1)),
                       e.attributes.contains("style"));
  }
  std::sort(found.begin(), found.end());
  BOOST_TEST((found == arrows_of(g)));
}

void check_json(GraphView g) {
  const std::string text = to_json(g);
  BOOST_TEST(to_json(g) == text);
  const Json j = Json::parse(text);  // throws if it is not JSON
  BOOST_TEST(Json::parse(to_json(g, -1)) == j);
  const auto number = text_numbers(g);
  const auto same = [&](const Json& list, std::span<const Value> values) {
    if (list.size() != values.size()) return false;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (list[i].at("node") != number[static_cast<std::size_t>(values[i].node)] ||
          list[i].at("output") != values[i].output)
        return false;
    return true;
  };
  BOOST_TEST_REQUIRE(j.at("nodes").size() == g.nodes.size());
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const auto id = static_cast<std::size_t>(number[static_cast<std::size_t>(n)]);
    const Json& node = j.at("nodes").at(id);
    BOOST_TEST(node.at("id") == id);
    BOOST_TEST(node.at("op") == name(g.nodes[n].op));
    BOOST_TEST(node.at("scope") == g.scope(n));
    BOOST_TEST(node.at("leaf") == g.leaf(n));
    BOOST_TEST(node.at("name") == dotted_name(g, n));
    BOOST_TEST(node.at("region") == g.nodes[n].region);
    BOOST_TEST(same(node.at("inputs"), g.inputs(n)));
    BOOST_TEST(node.at("attributes").size() + node.contains("body") == g.attributes_of(n).size());
    BOOST_TEST_REQUIRE(node.at("outputs").size() == static_cast<std::size_t>(g.nodes[n].outputs.count));
    for (int o = 0; o < g.nodes[n].outputs.count; ++o) {
      const Json& out = node.at("outputs").at(static_cast<std::size_t>(o));
      const auto shape = g.shape({n, o});
      BOOST_TEST(out.at("dtype") == name(g.info({n, o}).dtype));
      BOOST_TEST_REQUIRE(out.at("shape").size() == shape.size());
      for (std::size_t i = 0; i < shape.size(); ++i) {
        const Json& d = out.at("shape").at(i);
        const auto constant = g.dims.constant(shape[i]);
        BOOST_TEST(d.is_number() == constant.has_value());
        BOOST_TEST((d.is_number() ? std::to_string(d.get<std::int64_t>()) : d.get<std::string>()) ==
                   to_text(g, shape[i]));
      }
    }
  }
  BOOST_TEST_REQUIRE(j.at("regions").size() == g.regions.size());
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(g.regions.size()); ++r)
    BOOST_TEST(same(j.at("regions").at(static_cast<std::size_t>(r)).at("results"), g.results(r)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pictures)

BOOST_AUTO_TEST_CASE(every_example_is_complete) {
  for (const models::Entry& e : models::all) {
    BOOST_TEST_CONTEXT(e.name) {
      const Graph g = e.build();
      check_dot(g);
      check_json(g);
    }
  }
}

BOOST_AUTO_TEST_CASE(random_graphs_are_complete) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      const Graph g = random_graph(seed);
      check_dot(g);
      check_json(g);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_order_of_nodes_does_not_matter) {
  const Graph g = parse_graph("%8 = input \"a\" () : f32[n]\n%1 = input \"b\" () : f32[n]\n%2 = add (%1, %8) : f32[n]"),
              h = parse_graph("%0 = input \"a\" () : f32[n]\n%5 = input \"b\" () : f32[n]\n%2 = add (%5, %0) : f32[n]");
  BOOST_TEST(to_dot(g) == to_dot(h));
  const std::string json = to_json(g);
  BOOST_TEST(json == to_json(h));
  BOOST_TEST(json.find("\"node\": 1") < json.find("\"node\": 0"));  // the order of inputs does
}

BOOST_AUTO_TEST_CASE(names_are_escaped) {
  Graph g;
  g.regions.push_back({});
  const std::vector<std::string> names = {"plain",        "with \"quotes\"", "back\\slash\\N", "two\nlines",
                                          "<b>&amp;</b>", "{a|b} [c] ->",    "ünïcödé ×",      "\\",
                                          "end\\\""};
  for (const std::string& s : names)
    add_node(g, {.op = op::input, .leaf = g.strings.intern(s), .inputs = {}, .attributes = {}, .outputs = {{f32, {}}}});
  check_dot(g);
  check_json(g);
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text_stay_valid_json) {
  Graph g;
  g.regions.push_back({});
  add_node(g, {.op = op::input,
               .leaf = g.strings.intern("a\xff"
                                        "b"),
               .inputs = {},
               .attributes = {},
               .outputs = {{f32, {}}}});
  BOOST_TEST(Json::parse(to_json(g)).at("nodes").at(0).at("leaf") ==
             "a\xef\xbf\xbd"
             "b");
}

BOOST_AUTO_TEST_CASE(attributes_keep_their_kind) {
  Builder b;
  const Node x = b.input("x", f32, {batch, 2, seq, 8}), past = b.input("past", i32, {dim("past")});
  b.output("y", attention(x, x, x, {.mask = causal & window(3, 0), .scale = 0.25}));
  b.output("t", transpose(x));
  b.output("s",
           select(mask_node(b, causal, seq, seq), matmul(x, transpose(x)), -std::numeric_limits<double>::infinity()));
  b.output("p", past);
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  const Json j = Json::parse(to_json(g));
  std::map<std::string, Json> of;
  for (const Json& n : j.at("nodes")) of[n.at("op")] = n.at("attributes");
  BOOST_TEST(of.at("attention").at("scale") == 0.25);
  BOOST_TEST(of.at("attention").at("has_mask") == 1);
  BOOST_TEST(of.at("transpose").at("perm") == Json({0, 1, 3, 2}));
  BOOST_TEST(of.at("select").at("value") == "-inf");
  BOOST_TEST(of.at("mask").at("q_len") == "seq");
  BOOST_TEST(of.at("mask").at("expression").get<std::string>().find("k <= (q") != std::string::npos);
  BOOST_TEST(j.at("dims") == Json({"batch", "seq", "past"}));
  BOOST_TEST(to_dot(g).find("k <= (q") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(graphviz_draws_them) {
  if (std::system("dot -V >/dev/null 2>&1") != 0) return;  // the grammar above is checked without it
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "treadle_dot_XXXXXX").string();
  BOOST_TEST_REQUIRE((mkdtemp(folder.data()) != nullptr));
  for (const models::Entry& e : models::all) {
    std::ofstream(folder + "/g.dot") << to_dot(e.build(), e.name);
    const std::string command = "dot -Tsvg '" + folder + "/g.dot' -o '" + folder + "/g.svg' 2>'" + folder + "/error'";
    BOOST_TEST(std::system(command.c_str()) == 0, e.name);
    std::ifstream error(folder + "/error");
    BOOST_TEST(error.peek() == std::ifstream::traits_type::eof(), e.name);  // no warning either
  }
  fs::remove_all(folder);
}

BOOST_AUTO_TEST_SUITE_END()

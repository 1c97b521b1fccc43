#include <treadle/graph/json.hpp>

#include <treadle/graph/text.hpp>

#include <nlohmann/json.hpp>

#include <cmath>

namespace treadle {
namespace {

using Json = nlohmann::ordered_json;

class Writer {
 public:
  explicit Writer(GraphView g) : g_(g), number_(text_numbers(g)), node_(g.nodes.size()) {
    for (std::int32_t n = 0; n < g.size(); ++n) node_[static_cast<std::size_t>(id(n))] = n;
  }

  Json graph() const {
    Json j;
    j["dims"] = Json::array();
    for (const DimAtom& a : g_.dims.atoms)
      if (a.kind == AtomKind::symbol) j["dims"].push_back(g_.strings[a.name]);
    j["nodes"] = Json::array();
    for (const std::int32_t n : node_) j["nodes"].push_back(node(n));
    j["regions"] = Json::array();
    for (std::int32_t r = 0; r < static_cast<std::int32_t>(g_.regions.size()); ++r) {
      const Region& region = g_.regions[r];
      j["regions"].push_back({{"id", r},
                              {"parent", region.parent < 0 ? Json() : Json(region.parent)},
                              {"repeat", region.repeat_node < 0 ? Json() : Json(id(region.repeat_node))},
                              {"results", values(g_.results(r))}});
    }
    return j;
  }

 private:
  GraphView g_;
  std::vector<std::int32_t> number_, node_;

  std::int32_t id(std::int32_t n) const { return number_[static_cast<std::size_t>(n)]; }

  Json values(std::span<const Value> list) const {
    Json j = Json::array();
    for (const Value v : list) j.push_back({{"node", id(v.node)}, {"output", v.output}});
    return j;
  }
  Json dim(Dim d) const {
    if (const auto n = g_.dims.constant(d)) return *n;
    return to_text(g_, d);
  }
  Json attribute(std::int32_t n, const Attribute& a) const {
    if (a.kind == AttributeKind::number && std::isfinite(a.number)) return a.number;
    if (a.kind == AttributeKind::dim) return dim(static_cast<Dim>(a.integer));
    const std::string text = to_text(g_, n, a);
    if (a.kind == AttributeKind::integer || a.kind == AttributeKind::table || a.kind == AttributeKind::data) {
      // What the text writes as a number or a list of numbers is one here; anything else is a name.
      const Json j = Json::parse(text, nullptr, false);
      if (!j.is_discarded()) return j;
    }
    return text;
  }
  Json node(std::int32_t n) const {
    const NodeData& d = g_.nodes[n];
    Json j;
    j["id"] = id(n);
    j["op"] = name(d.op);
    j["name"] = dotted_name(g_, n);
    j["scope"] = g_.scope(n);
    j["leaf"] = g_.leaf(n);
    j["region"] = d.region;
    j["line"] = d.line;
    j["inputs"] = values(g_.inputs(n));
    j["attributes"] = Json::object();
    for (const Attribute& a : g_.attributes_of(n))
      if (a.key != key::region) j["attributes"][std::string(name(a.key))] = attribute(n, a);
    if (const Attribute* body = g_.find(n, key::region)) j["body"] = body->integer;
    j["outputs"] = Json::array();
    for (std::int32_t o = 0; o < d.outputs.count; ++o) {
      Json shape = Json::array();
      for (const Dim x : g_.shape({n, o})) shape.push_back(dim(x));
      j["outputs"].push_back({{"dtype", name(g_.info({n, o}).dtype)}, {"shape", shape}});
    }
    return j;
  }
};

}  // namespace

std::string to_json(GraphView g, int indent) {
  return Writer(g).graph().dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace treadle

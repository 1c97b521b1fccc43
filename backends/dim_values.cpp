#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>

#include <algorithm>

namespace treadle {

BoundDims::BoundDims(GraphView graph, const DimValues& values)
    : graph_(graph), values_(graph.dims.atoms.size(), 0), bound_(graph.dims.atoms.size(), 0) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const DimAtom& atom = graph.dims.atoms[i];
    if (atom.kind != AtomKind::symbol) continue;
    const std::string name(graph.strings[atom.name]);
    const auto found = values.find(name);
    if (found == values.end()) continue;
    if (found->second < 0)
      throw Error("dim '" + name + "' is " + std::to_string(found->second) + "; a length is at least 0");
    values_[i] = found->second;
    bound_[i] = 1;
  }
}

void BoundDims::require(Dim d) const {
  for (const DimTerm& term : graph_.dims.terms_of(d)) {
    for (const int a : term.atoms) {
      if (a < 0) continue;
      const DimAtom& atom = graph_.dims.atoms[static_cast<std::size_t>(a)];
      if (atom.kind == AtomKind::symbol) {
        if (bound_[static_cast<std::size_t>(a)] == 0)
          throw Error("dim '" + std::string(graph_.strings[atom.name]) +
                      "' has no value; bind it to a length before the run");
      } else {
        require(atom.a);
        require(atom.b);
      }
    }
  }
}

std::int64_t BoundDims::operator()(Dim d) const {
  require(d);
  return graph_.dims.evaluate(d, values_);
}

std::vector<std::int64_t> BoundDims::operator()(std::span<const Dim> shape) const {
  std::vector<std::int64_t> out;
  for (const Dim d : shape) out.push_back((*this)(d));
  return out;
}

std::int64_t BoundDims::attribute(std::int32_t node, key k, std::int64_t otherwise) const {
  const Attribute* a = graph_.find(node, k);
  if (a == nullptr) return otherwise;
  return a->kind == AttributeKind::dim ? (*this)(static_cast<Dim>(a->integer)) : a->integer;
}

std::vector<std::string> dim_names(GraphView graph) {
  std::vector<std::string> names;
  for (const DimAtom& atom : graph.dims.atoms)
    if (atom.kind == AtomKind::symbol) names.emplace_back(graph.strings[atom.name]);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace treadle

#pragma once
// A view's tables as a graph of one's own.

#include <treadle/graph/graph.hpp>

namespace treadle {

/// Owns what `g` shows; the copy has no error.
constexpr Graph copy_of(GraphView g) {
  Graph c;
  const auto copy = [](const auto& from, auto& to) {
    const auto* first = from.data();  // a loop over pointers: see Strings::intern
    to.reserve(from.size());
    for (std::size_t i = 0, n = from.size(); i < n; ++i) to.push_back(first[i]);
  };
  copy(g.nodes, c.nodes);
  copy(g.edges, c.edges);
  copy(g.values, c.values);
  copy(g.shapes, c.shapes);
  copy(g.attributes, c.attributes);
  copy(g.tables, c.tables);
  copy(g.regions, c.regions);
  copy(g.strings.chars, c.strings.chars);
  copy(g.strings.entries, c.strings.entries);
  copy(g.dims.atoms, c.dims.atoms);
  copy(g.dims.terms, c.dims.terms);
  copy(g.dims.sums, c.dims.sums);
  copy(g.scalars.nodes, c.scalars.nodes);
  copy(g.scalars.names, c.scalars.names);
  return c;
}

}  // namespace treadle

#pragma once
// From a graph in constant evaluation to exactly sized tables in static storage.
//
// Builder and passes are evaluated once, into a carrier with a declared capacity, which is then shrunk. (Evaluating
// twice, sizes first, costs twice the compile time.)

#include <treadle/graph/graph.hpp>

#include <array>

namespace treadle {

/// Rows of each table.
struct TableSizes {
  std::size_t nodes = 0, edges = 0, values = 0, shapes = 0, attributes = 0, tables = 0, regions = 0, chars = 0,
              strings = 0, atoms = 0, terms = 0, sums = 0, scalars = 0, scalar_chars = 0;
  constexpr bool fits(const TableSizes& c) const {
    return nodes <= c.nodes && edges <= c.edges && values <= c.values && shapes <= c.shapes &&
           attributes <= c.attributes && tables <= c.tables && regions <= c.regions && chars <= c.chars &&
           strings <= c.strings && atoms <= c.atoms && terms <= c.terms && sums <= c.sums && scalars <= c.scalars &&
           scalar_chars <= c.scalar_chars;
  }
};

constexpr TableSizes sizes_of(GraphView g) {
  return {g.nodes.size(),           g.edges.size(),        g.values.size(),     g.shapes.size(),
          g.attributes.size(),      g.tables.size(),       g.regions.size(),    g.strings.chars.size(),
          g.strings.entries.size(), g.dims.atoms.size(),   g.dims.terms.size(), g.dims.sums.size(),
          g.scalars.nodes.size(),   g.scalars.names.size()};
}

/// Enough for `nodes` nodes of usual models.
constexpr TableSizes capacity_for(std::size_t nodes) {
  return {nodes,          nodes * 3, nodes * 2, nodes * 6, nodes * 5, 512 + nodes, 64 + nodes / 8, 2048 + nodes * 12,
          64 + nodes * 2, 128,       1024,      512,       1024,      512};
}

/// `S` rows of each table; `used` says how many hold data.
template <TableSizes S>
struct Frozen {
  std::array<NodeData, S.nodes> nodes{};
  std::array<Value, S.edges> edges{};
  std::array<ValueInfo, S.values> values{};
  std::array<Dim, S.shapes> shapes{};
  std::array<Attribute, S.attributes> attributes{};
  std::array<std::int64_t, S.tables> tables{};
  std::array<Region, S.regions> regions{};
  std::array<char, S.chars> chars{};
  std::array<StringEntry, S.strings> strings{};
  std::array<DimAtom, S.atoms> atoms{};
  std::array<DimTerm, S.terms> terms{};
  std::array<DimSum, S.sums> sums{};
  std::array<scalar::Node, S.scalars> scalars{};
  std::array<char, S.scalar_chars> scalar_chars{};
  TableSizes used{};
  ModelError error{};

  constexpr GraphView view() const {
    return {
        std::span(nodes.data(), used.nodes),
        std::span(edges.data(), used.edges),
        std::span(values.data(), used.values),
        std::span(shapes.data(), used.shapes),
        std::span(attributes.data(), used.attributes),
        std::span(tables.data(), used.tables),
        std::span(regions.data(), used.regions),
        {std::span(chars.data(), used.chars), std::span(strings.data(), used.strings)},
        {std::span(atoms.data(), used.atoms), std::span(terms.data(), used.terms), std::span(sums.data(), used.sums)},
        {std::span(scalars.data(), used.scalars), std::span(scalar_chars.data(), used.scalar_chars)}};
  }
  constexpr operator GraphView() const { return view(); }
  constexpr int count(op o) const { return view().count(o); }
};

/// Copies `g` into tables of `S` rows. A graph that does not fit becomes the error `too_many_nodes`.
template <TableSizes S>
constexpr Frozen<S> freeze(GraphView g, const ModelError& error) {
  Frozen<S> f;
  f.error = error;
  const TableSizes n = sizes_of(g);
  if (!n.fits(S)) {
    f.error = {};
    f.error.kind = error_kind::too_many_nodes;
    f.error.line = static_cast<std::int32_t>(n.nodes);
    return f;
  }
  f.used = n;
  const auto copy = [](const auto& from, auto& to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i];
  };
  copy(g.nodes, f.nodes);
  copy(g.edges, f.edges);
  copy(g.values, f.values);
  copy(g.shapes, f.shapes);
  copy(g.attributes, f.attributes);
  copy(g.tables, f.tables);
  copy(g.regions, f.regions);
  copy(g.strings.chars, f.chars);
  copy(g.strings.entries, f.strings);
  copy(g.dims.atoms, f.atoms);
  copy(g.dims.terms, f.terms);
  copy(g.dims.sums, f.sums);
  copy(g.scalars.nodes, f.scalars);
  copy(g.scalars.names, f.scalar_chars);
  return f;
}

}  // namespace treadle

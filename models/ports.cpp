#include <treadle/backends/names.hpp>
#include <treadle/models/ports.hpp>

namespace treadle::models {

std::vector<Port> ports(GraphView g, op kind) {
  std::vector<Port> all;
  for (std::int32_t n = 0; n < g.size(); ++n)
    if (g.nodes[static_cast<std::size_t>(n)].op == kind)
      all.push_back({kind == op::state ? full_name(g, n) : std::string(g.leaf(n)), n});
  return all;
}

std::int64_t rows_by_ids(GraphView g, std::string_view input) {
  std::int64_t least = 0;
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const op kind = g.nodes[static_cast<std::size_t>(n)].op;
    if (kind != op::embedding && kind != op::embedding_sum) continue;
    const Value table = g.inputs(n)[0], ids = g.inputs(n)[1];
    if (g.nodes[static_cast<std::size_t>(ids.node)].op != op::input || g.leaf(ids.node) != input) continue;
    const auto rows = g.dims.constant(g.shape(table)[0]);
    if (rows && (least == 0 || *rows < least)) least = *rows;
  }
  return least;
}

std::string_view symbol_of(GraphView g, Dim d) {
  const auto terms = g.dims.terms_of(d);
  if (terms.size() != 1 || terms[0].coefficient != 1) return {};
  int found = -1;
  for (const int atom : terms[0].atoms) {
    if (atom < 0) continue;
    if (found >= 0) return {};
    found = atom;
  }
  if (found < 0 || g.dims.atoms[found].kind != AtomKind::symbol) return {};
  return g.strings[g.dims.atoms[found].name];
}

}  // namespace treadle::models

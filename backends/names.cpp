#include <treadle/backends/names.hpp>

#include <treadle/graph/text.hpp>

namespace treadle {

std::string full_name(GraphView graph, std::int32_t node, std::span<const std::int64_t> iterations) {
  const std::string text = dotted_name(graph, node);
  std::string name;
  std::size_t level = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // "#" is a whole component of the path, never a part of one.
    const bool component = (i == 0 || text[i - 1] == '.') && (i + 1 == text.size() || text[i + 1] == '.');
    if (text[i] == '#' && component && level < iterations.size()) {
      name += std::to_string(iterations[level++]);
    } else {
      name += text[i];
    }
  }
  return name;
}

std::string describe(GraphView graph, std::int32_t node) {
  std::string text(name(graph.nodes[static_cast<std::size_t>(node)].op));
  const std::string where = full_name(graph, node);
  if (!where.empty()) text += " '" + where + "'";
  const std::int32_t line = graph.nodes[static_cast<std::size_t>(node)].line;
  if (line > 0) text += " (line " + std::to_string(line) + ")";
  return text;
}

}  // namespace treadle

#pragma once
// Graphs as pictures: DOT, the language of Graphviz (`dot -Tsvg`).
//
// One box a node, one arrow a value that is read, each repeat's body as a cluster. Node n of the text (text.hpp) is
// `n<n>` here. An outer value that a repeat reads points at the body's region_input, a result of the body at the
// repeat's own box, and a carried result also, dashed, at the region_input of the next iteration. Arrows carry the
// output's index where it is not 0. The same graph gives the same bytes.

#include <treadle/graph/graph.hpp>

#include <string>
#include <string_view>

namespace treadle {

/// `title` stands above the picture; empty: none.
std::string to_dot(GraphView g, std::string_view title = {});

}  // namespace treadle

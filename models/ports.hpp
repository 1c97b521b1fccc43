#pragma once
// Inputs, outputs and states of a graph by name. Not installed.

#include <treadle/graph/graph.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::models {

struct Port {
  std::string name;
  std::int32_t node = -1;
};

/// The nodes of one kind: op::input, op::output or op::state.
std::vector<Port> ports(GraphView g, op kind);

/// The rows of the table that ids of this input are looked up in, the least of several; 0: none, or a number that a
/// run decides.
std::int64_t rows_by_ids(GraphView g, std::string_view input);

/// The name of a dim that is a single name, else "".
std::string_view symbol_of(GraphView g, Dim d);

}  // namespace treadle::models

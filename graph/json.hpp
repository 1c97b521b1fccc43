#pragma once
// Graphs as JSON: for scripts, viewers and reports.
//
//   {"dims": ["batch", "seq"],
//    "nodes": [{"id": 0, "op": "input", "name": "tokens", "scope": "", "leaf": "tokens", "region": 0, "line": 12,
//               "inputs": [], "attributes": {}, "outputs": [{"dtype": "i32", "shape": ["batch", "seq"]}]},
//              {"id": 5, "op": "linear", "name": "h.#.proj", …, "inputs": [{"node": 3, "output": 0}, …],
//               "attributes": {"has_bias": 1, "function": "gelu_tanh"}, …},
//              {"id": 9, "op": "repeat", …, "body": 1, …}],
//    "regions": [{"id": 0, "parent": null, "repeat": null, "results": []},
//                {"id": 1, "parent": 0, "repeat": 9, "results": [{"node": 8, "output": 0}]}]}
//
// Nodes stand in the order of the text (text.hpp), and an id is the number there. A length is a number, or a string if
// it depends on named dims ("patches + 1"). Attributes are numbers where they are finite numbers, arrays where there is
// one per iteration or axis, and strings otherwise: activations by name, traced functions and dims as text. The same
// graph gives the same bytes.

#include <treadle/graph/graph.hpp>

#include <string>

namespace treadle {

/// `indent` spaces a level; −1: one line. Bytes of names that are not UTF-8 become U+FFFD.
std::string to_json(GraphView g, int indent = 2);

}  // namespace treadle

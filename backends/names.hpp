#pragma once
// Full names of nodes: scope + "." + leaf, with the iteration of each enclosing repeat in the place of "#".

#include <treadle/graph/graph.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace treadle {

/// "h.#.attn" + "q.weight" in iteration 3 → "h.3.attn.q.weight". `iterations` are outermost first; a "#" beyond them
/// stays.
std::string full_name(GraphView graph, std::int32_t node, std::span<const std::int64_t> iterations = {});

/// Where a node stands, for an error: "linear 'h.#.attn.q' (line 12)".
std::string describe(GraphView graph, std::int32_t node);

}  // namespace treadle

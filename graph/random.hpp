#pragma once
// Random valid graphs: what the properties of passes and executors are tested on.
//
// They hold every op, attention that is written out in many ways, duplicates, nodes that nothing reads, repeats with
// captured values, side outputs, states and other repeats inside. Values stay of moderate size. A seed gives the same
// graph everywhere.

#include <treadle/graph/graph.hpp>

#include <cstdint>

namespace treadle {

struct RandomOptions {
  int pieces = 10;          ///< of the main region; a piece is one to a dozen nodes
  int depth = 2;            ///< of repeats in repeats; 0: none
  bool states = true;       ///< KV caches in repeats and outside
  bool written_out = true;  ///< attention from primitive nodes
  bool masks_with_tables = true;
};

/// Named dims: "batch", "seq" (up to 16), "memory", and "past" where there are states, whose capacity is 24. Inputs:
/// "tokens" (i32 [batch, seq], ids below 11), "x" [batch, seq, 8], "memory" [batch, memory, 8], "lengths" (i32
/// [batch]), "past_tokens" (i32 [past], binds the dim), "keep" (bool [seq, seq]), "bias" [seq, seq].
Graph random_graph(std::uint64_t seed, const RandomOptions& options = {});

}  // namespace treadle

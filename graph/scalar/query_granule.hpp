#pragma once
// Which queries a function cannot tell apart, as in masks made of blocks: kernels that cut queries at the same places
// never meet two blocks in one strip.

#include <treadle/graph/scalar/program.hpp>

namespace treadle::scalar {

/// What is known of a node: its value, or that it is the query's position plus one, or that it has one value for the
/// queries of every block [i·granule, (i + 1)·granule); 0: for all queries.
struct QueryPart {
  enum class Kind : std::uint8_t { other, known, query_plus };
  Kind kind = Kind::other;
  std::int64_t value = 0;
  std::int64_t granule = 0;
};

/// The granule of the root for the lengths that are bound: 0 where it does not depend on the query, 1 where nothing is
/// known. Exact for blocks, q / 64, and for bounds, q < 128, also with q counted from the end; 1 for other uses of q.
/// `parts` is scratch, one for each node after the first call, which alone allocates.
std::int64_t query_granule(const TileProgram& program, std::vector<QueryPart>& parts);

}  // namespace treadle::scalar

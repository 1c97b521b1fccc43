#pragma once
// A model with the weights of all its attentions as further outputs.

#include <treadle/graph/graph.hpp>

#include <string>
#include <vector>

namespace treadle::cli {

/// An output of weights: [heads…] or, once for each enclosing repeat, [times, …] before that.
struct ProbedAttention {
  std::string output;        ///< its name: "weights of attention 0"
  std::string scope;         ///< of the attention: "encoder.layer.#.attention"
  int repeats = 0;           ///< stacked dims in front of [batch, heads, queries, keys]
  bool same_lengths = true;  ///< queries and keys have one length, whatever it is
};

struct ProbedGraph {
  Graph graph;
  std::vector<ProbedAttention> attentions;  ///< in the order of the nodes
};

/// Adds a probe behind every attention, hands it out of its repeats as a side output, and names it as an output.
ProbedGraph with_weights(GraphView g);

}  // namespace treadle::cli

#pragma once
// What `explain` shows: facts about a model before, between and after the passes, and about the plan that runs,
// collected first and then written as text or as JSON. docs/explain.md says what each number means.

#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/dim_values.hpp>
#include <treadle/graph/graph.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

/// What a graph costs when it is planned and run as it is.
struct PlanCost {
  std::size_t steps = 0;
  double useful_flops = 0, executed_flops = 0, bytes = 0;
  std::size_t arena_bytes = 0;
  bool upper_bound = false;  ///< a mask reads tables that only a run gives, so its pairs are not known yet
};

/// A graph at one point of the pipeline.
struct Stage {
  int number = 0;    ///< 0: as declared
  std::string pass;  ///< that made it; empty: as declared
  int rewrites = 0;
  Graph graph;
  std::optional<PlanCost> cost;
  std::string refused;                      ///< why there is no cost
  std::vector<std::string> removed, added;  ///< nodes against the stage before, as in text but without numbers
};

/// Every node of the last graph, with the steps that run it.
struct NodeFacts {
  std::int32_t node = -1;
  std::string kernel, form;    ///< kernel empty: no step runs it
  std::size_t steps = 0;       ///< in all iterations of its repeats
  std::size_t bind_steps = 0;  ///< that ran once, at bind
  double useful_flops = 0, executed_flops = 0, bytes = 0;
  bool upper_bound = false;
};

struct Explanation {
  std::string model, summary;
  DimValues dims;
  std::string backend, isa;
  int threads = 1;
  std::vector<Stage> stages;  ///< as declared, then one a pass
  std::vector<NodeFacts> nodes;
  std::vector<BufferInfo> buffers;
  std::size_t arena_bytes = 0, separate_bytes = 0;  ///< separate: if no result lay over an operand
  std::size_t workspace_bytes = 0, staging_bytes = 0;

  const Stage& last() const { return stages.back(); }
};

struct ExplainOptions {
  std::string backend = "tbb", isa;
  DimValues dims;
};

/// A length for every dim of a model, where nobody names one.
DimValues usual_sizes(const Graph& graph);

/// Runs the passes and plans every stage for these lengths. Throws Error if the last graph cannot be planned.
Explanation explain(std::string_view model, std::string_view summary, const Graph& graph,
                    const ExplainOptions& options);

/// With `colour`: headings for a terminal.
std::string to_text(const Explanation& e, bool colour);
std::string to_json(const Explanation& e);

}  // namespace treadle::cli

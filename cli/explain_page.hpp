#pragma once
// The page of `explain`, and what a model does when it runs once.

#include "explain_report.hpp"

#include <string>

namespace treadle::cli {

/// The graph of every stage, what each pass saves, kernels, and the memory plan, as one page.
std::string to_html(const Explanation& e);

/// Trace events of the model's second run, on random inputs: floats normal, ids 0, conditions true. Throws Error for
/// the reference backend, which has no steps.
std::string trace_of_run(GraphView graph, const ExplainOptions& options);

}  // namespace treadle::cli

#pragma once
// `explain --passes`: what every pass saves on the example models.

#include "explain_report.hpp"

#include <string>

namespace treadle::cli {

/// One row a pass: how often it rewrites in all example models, and what it changes in the one where it saves most of
/// the bytes moved (or of the nodes, if it saves no bytes anywhere). Lengths are those of `explain` without --dims.
std::string pass_savings(const ExplainOptions& options);

}  // namespace treadle::cli

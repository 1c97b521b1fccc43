#pragma once
// The files of `compare --checkpoint`, whichever kind of model it is: JSON, CSV and the page.

#include "checkpoint_comparison.hpp"
#include "json_rows.hpp"

#include <vector>

namespace treadle::cli {

/// Each file that the plan names, as a whole, with the rows so far; the page comes with the last one. `names` is a row
/// of any values. Throws Error.
void write_checkpoint_files(const CheckpointPlan& plan, const std::vector<Json>& rows, const Json& names, bool last);

/// What was written, a line each.
void print_checkpoint_files(const CheckpointPlan& plan);

}  // namespace treadle::cli

#pragma once
// The page of `compare --checkpoint`.

#include "checkpoint_comparison.hpp"
#include "json_rows.hpp"

#include <string>

namespace treadle::cli {

/// `results` is what the JSON file holds, `csv` what the CSV file does. Weights are those of the beginning of the text.
std::string checkpoint_page(const CheckpointPlan& plan, const Json& results, const std::string& csv);

}  // namespace treadle::cli

#pragma once
// A page of HTML that opens without a network: the files of report/, Chart.js and the data, in one text.

#include "json_rows.hpp"

#include <string>

namespace treadle::cli {

/// Throws Error, which names the package, if Chart.js is not in the program and not on the machine. TREADLE_CHART_JS
/// names another file of it.
void require_charts();

/// `data.kind` says what the page shows: "compare" (compare.js), "checkpoint" or "explain". Names in the data may hold
/// anything: markup cannot come of them. Numbers that are not finite become null.
std::string make_page(const Json& data);

}  // namespace treadle::cli

#pragma once
// What the JSON and CSV files of `compare` have in common.

#include "machine.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace treadle::cli {

using Json = nlohmann::ordered_json;

/// An object with machine, compiler, commit, version, seed and date.
Json report_head(const Machine& machine, std::uint64_t seed, const std::string& date);

/// A line of CSV: the names of an object's values, or the values. Null is empty, a list has blanks between its numbers.
std::string csv_names(const Json& row);
std::string csv_values(const Json& row);

}  // namespace treadle::cli

#include "json_rows.hpp"

#include <algorithm>

namespace treadle::cli {

namespace {

std::string quoted_where_needed(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return quoted_where_needed(value.get<std::string>());
  std::string text = value.dump();
  if (!value.is_array()) return text;
  text = text.substr(1, text.size() - 2);
  std::replace(text.begin(), text.end(), ',', ' ');
  return text;
}

}  // namespace

Json report_head(const Machine& machine, std::uint64_t seed, const std::string& date) {
  Json j;
  j["machine"] = {{"cpu", machine.cpu}, {"isa", machine.isa}, {"cores", machine.cores}};
  j["compiler"] = compiler();
  j["commit"] = commit();
  j["version"] = version();
  j["seed"] = seed;
  j["date"] = date;
  return j;
}

std::string csv_names(const Json& row) {
  std::string line;
  for (const auto& [name, value] : row.items()) line.append(line.empty() ? "" : ",").append(name);
  return line + '\n';
}

std::string csv_values(const Json& row) {
  std::string line;
  bool first = true;
  for (const auto& [name, value] : row.items()) {
    line.append(first ? "" : ",").append(csv_text(value));
    first = false;
  }
  return line + '\n';
}

}  // namespace treadle::cli

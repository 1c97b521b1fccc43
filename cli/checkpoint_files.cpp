#include "checkpoint_files.hpp"

#include "checkpoint_page.hpp"
#include "machine.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace treadle::cli {

namespace fs = std::filesystem;

void write_checkpoint_files(const CheckpointPlan& plan, const std::vector<Json>& rows, const Json& names, bool last) {
  Json j = report_head(machine(), plan.seed, date());
  j["checkpoint"] = fs::path(plan.folder).filename().string();
  j["text"] = fs::path(plan.text).filename().string();
  j["rows"] = rows;
  std::string csv = csv_names(names);
  for (const Json& r : rows) csv += csv_values(r);
  if (!plan.json.empty()) replace_file(plan.json, j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  if (!plan.csv.empty()) replace_file(plan.csv, csv);
  if (!plan.html.empty() && last) replace_file(plan.html, checkpoint_page(plan, j, csv));
}

void print_checkpoint_files(const CheckpointPlan& plan) {
  for (const std::string& path : {plan.json, plan.csv, plan.html})
    if (!path.empty()) fmt::print("Wrote {}\n", path);
}

}  // namespace treadle::cli

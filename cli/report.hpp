#pragma once
// The results of `compare` as a table, as JSON and as CSV. The fields are documented in docs/compare.md and stable.

#include "json_rows.hpp"
#include "machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace treadle::cli {

struct Row {
  std::string input;  ///< "random", or the name of the folder with q.npy, k.npy and v.npy
  std::string variant;
  bool causal = false;
  std::int64_t length = 0, batch = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::string backend, isa;
  int threads = 1;
  std::int64_t repetitions = 0;
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  /// GFLOP/s over what the mask keeps, and over what the tiles compute; unknown where the run itself computes what the
  /// mask keeps, as routing does.
  std::optional<double> useful_gflops, executed_gflops;
  std::optional<double> fraction_of_peak;  ///< useful_gflops / FMA peak of as many threads, measured between the runs
  std::int64_t planned_bytes = 0;
  std::optional<std::int64_t> peak_bytes;
  double relative_error = 0;
  std::optional<double> mean_entropy;
  std::int64_t sampled_rows = 0;  ///< query rows over all heads and batch elements that error and entropy come from
};

struct Exponent {
  std::string input, variant;
  double exponent = 0;  ///< of median time over length
  std::int64_t lengths = 0;
};

struct Report {
  Machine machine;
  std::uint64_t seed = 0;
  std::string date;
  double peak_gflops = 0;
  std::vector<Row> rows;
  std::vector<Exponent> exponents;
};

Json to_json_object(const Report& report);
std::string to_json(const Report& report);
Json to_json_row(const Row& row);
std::string to_csv(const Report& report);

/// Checks, without touching the file, that it could be written. Throws Error.
void require_writable(const std::string& path);
/// Writes to a file beside it and renames: the old file stays whole until the new one is. Throws Error.
void replace_file(const std::string& path, const std::string& text);
/// On SIGINT and SIGTERM: say `sentence` on stderr and end with 130, but never between the two steps of `replace_file`.
void end_when_interrupted(const char* sentence);

/// Whether stdout is a terminal that shows colours, and NO_COLOR is not set.
bool colours_wanted();

/// Prints the table to stdout row by row, and progress to stderr if that is a terminal.
class Table {
 public:
  Table();
  void heading(const std::string& text);
  void columns();
  void row(const Row& row);
  void note(const std::string& text);
  void exponents(const std::vector<Exponent>& exponents);
  void progress(const std::string& text);
  void clear_progress();

 private:
  bool colour_ = false, live_ = false, shown_ = false;
  std::string dim(const std::string& text) const;
  std::string bold(const std::string& text) const;
};

}  // namespace treadle::cli

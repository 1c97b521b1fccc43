#include "report.hpp"

#include "arguments.hpp"
#include "json_rows.hpp"

#include <treadle/backends/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace treadle::cli {

namespace {
template <class T>
Json or_null(const std::optional<T>& x) {
  return x ? Json(*x) : Json();
}
/// A number for the table, or a dash.
std::string or_dash(const char* form, const std::optional<double>& x) {
  return x ? fmt::format(fmt::runtime(form), *x) : "-";
}

volatile std::sig_atomic_t interrupted = 0, writing = 0;
const char* farewell = "";

void leave() {
  // Only async-signal-safe calls: the signal may have come in the middle of anything.
  const ssize_t written = write(STDERR_FILENO, farewell, std::strlen(farewell));
  (void)written;
  _exit(130);
}
void on_signal(int) {
  interrupted = 1;
  if (writing == 0) leave();
}

/// While one lives, a signal waits.
struct Undisturbed {
  Undisturbed() { writing = 1; }
  ~Undisturbed() {
    writing = 0;
    if (interrupted != 0) leave();
  }
};
}  // namespace

Json to_json_row(const Row& r) {
  return {{"input", r.input},
          {"variant", r.variant},
          {"causal", r.causal},
          {"length", r.length},
          {"batch", r.batch},
          {"heads", r.heads},
          {"kv_heads", r.kv_heads},
          {"head_dim", r.head_dim},
          {"backend", r.backend},
          {"isa", r.isa},
          {"threads", r.threads},
          {"repetitions", r.repetitions},
          {"median_ms", r.median_ms},
          {"p10_ms", r.p10_ms},
          {"p90_ms", r.p90_ms},
          {"useful_gflops", or_null(r.useful_gflops)},
          {"executed_gflops", or_null(r.executed_gflops)},
          {"fraction_of_peak", or_null(r.fraction_of_peak)},
          {"planned_bytes", r.planned_bytes},
          {"peak_bytes", or_null(r.peak_bytes)},
          {"relative_error", r.relative_error},
          {"mean_entropy", or_null(r.mean_entropy)},
          {"sampled_rows", r.sampled_rows}};
}

Json to_json_object(const Report& report) {
  Json j = report_head(report.machine, report.seed, report.date);
  j["peak_gflops"] = report.peak_gflops;
  j["rows"] = Json::array();
  for (const Row& r : report.rows) j["rows"].push_back(to_json_row(r));
  j["exponents"] = Json::array();
  for (const Exponent& e : report.exponents)
    j["exponents"].push_back(
        {{"input", e.input}, {"variant", e.variant}, {"exponent", e.exponent}, {"lengths", e.lengths}});
  return j;
}

std::string to_json(const Report& report) {
  return to_json_object(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_csv(const Report& report) {
  // Comment lines first, so that the file says by itself what it was measured on.
  std::string text =
      fmt::format("# cpu={}; isa={}; cores={}; compiler={}; commit={}; version={}; seed={}; date={}; peak_gflops={}\n",
                  report.machine.cpu, report.machine.isa, report.machine.cores, compiler(), commit(), version(),
                  report.seed, report.date, report.peak_gflops);
  text += csv_names(to_json_row({}));
  for (const Row& r : report.rows) text += csv_values(to_json_row(r));
  return text;
}

void require_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path file(path);
  const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  if (fs::is_directory(file, none)) throw Error(fmt::format("'{}' is a folder: name a file to write to", path));
  if (!fs::is_directory(folder, none))
    throw Error(fmt::format("cannot write '{}': there is no folder '{}'", path, folder.string()));
  if (access(folder.c_str(), W_OK) != 0 || (fs::exists(file, none) && access(file.c_str(), W_OK) != 0))
    throw Error(fmt::format("cannot write '{}': {}; name a file that you may write", path, std::strerror(errno)));
}

void replace_file(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code failed;
  // A device or a pipe (/dev/stdout) is written, not replaced.
  if (fs::exists(path, failed) && !fs::is_regular_file(path, failed)) {
    std::ofstream out(path, std::ios::binary);
    out << text << std::flush;
    if (!out) throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
    return;
  }
  const Undisturbed undisturbed;
  const std::string beside = fmt::format("{}.part{}", path, getpid());
  {
    std::ofstream out(beside, std::ios::binary);
    out << text << std::flush;
    if (!out) {
      const std::string why = std::strerror(errno);
      fs::remove(beside, failed);
      throw Error(fmt::format("cannot write '{}': {}", path, why));
    }
  }
  fs::rename(beside, path, failed);
  if (failed) {
    const std::string why = failed.message();
    fs::remove(beside, failed);
    throw Error(fmt::format("cannot write '{}': {}", path, why));
  }
}

void end_when_interrupted(const char* sentence) {
  farewell = sentence;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

namespace {
bool dumb_terminal() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::strcmp(terminal, "dumb") == 0;
}
}  // namespace

bool colours_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0') && !dumb_terminal();
}

Table::Table() : colour_(colours_wanted()), live_(isatty(STDERR_FILENO) != 0 && !dumb_terminal()) {}

std::string Table::dim(const std::string& text) const { return colour_ ? "\033[2m" + text + "\033[0m" : text; }
std::string Table::bold(const std::string& text) const { return colour_ ? "\033[1m" + text + "\033[0m" : text; }

void Table::heading(const std::string& text) {
  clear_progress();
  fmt::print("\n{}\n", bold(text));
  std::fflush(stdout);
}

void Table::columns() {
  clear_progress();
  fmt::print("{}\n", dim(fmt::format(
                         "{:<24} {:>7} {:>10} {:>10} {:>10} {:>5} {:>9} {:>9} {:>6} {:>10} {:>10} {:>9} {:>8} {:>7}",
                         "variant", "length", "median ms", "p10", "p90", "runs", "GFLOP/s", "executed", "peak",
                         "planned", "measured", "error", "entropy", "rows")));
}

void Table::row(const Row& r) {
  clear_progress();
  fmt::print(
      "{:<24} {:>7} {:>10.3f} {:>10.3f} {:>10.3f} {:>5} {:>9} {:>9} {:>6} {:>10} {:>10} {:>9.2e} {:>8} "
      "{:>7}\n",
      r.variant, r.length, r.median_ms, r.p10_ms, r.p90_ms, r.repetitions, or_dash("{:.2f}", r.useful_gflops),
      or_dash("{:.2f}", r.executed_gflops),
      r.fraction_of_peak ? fmt::format("{:.0f}%", 100 * *r.fraction_of_peak) : "-",
      bytes_text(static_cast<double>(r.planned_bytes)),
      r.peak_bytes ? bytes_text(static_cast<double>(*r.peak_bytes)) : "-", r.relative_error,
      or_dash("{:.3f}", r.mean_entropy), r.sampled_rows);
  std::fflush(stdout);
}

void Table::note(const std::string& text) {
  clear_progress();
  fmt::print("{}\n", dim(text));
  std::fflush(stdout);
}

void Table::exponents(const std::vector<Exponent>& exponents) {
  if (exponents.empty()) return;
  heading("Time grows as length to the power of");
  for (const Exponent& e : exponents)
    fmt::print("{:<24} {:>7.2f}  {}\n", e.variant, e.exponent, dim(fmt::format("({} lengths)", e.lengths)));
  std::fflush(stdout);
}

void Table::progress(const std::string& text) {
  if (!live_) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void Table::clear_progress() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace treadle::cli

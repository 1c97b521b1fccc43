#include "machine.hpp"

#include <treadle/backends/kernel.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "treadle_commit.hpp"

namespace treadle::cli {

namespace {
/// The number behind "Name:" of a file of /proc, times 1024 (they are in kB).
std::optional<std::int64_t> kilobytes(const char* file, const std::string& field) {
  std::ifstream in(file);
  for (std::string word; in >> word;) {
    std::int64_t value = 0;
    if (word == field && in >> value) return value * 1024;
  }
  return std::nullopt;
}
}  // namespace

Machine machine() {
  Machine m;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; m.cpu.empty() && std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) m.cpu = line.substr(colon + 2);
  }
  if (m.cpu.empty()) m.cpu = "unknown";
  m.isa = kernel::best_table().isa;
  cpu_set_t set;
  CPU_ZERO(&set);
  m.cores = sched_getaffinity(0, sizeof set, &set) == 0
                ? CPU_COUNT(&set)
                : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return m;
}

std::string version() { return TREADLE_VERSION; }
std::string compiler() { return TREADLE_COMPILER; }
std::string commit() { return treadle_commit; }
std::string date() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

double memory_available() { return static_cast<double>(kilobytes("/proc/meminfo", "MemAvailable:").value_or(0)); }
std::optional<std::int64_t> resident_bytes() { return kilobytes("/proc/self/status", "VmRSS:"); }

bool reset_peak_resident() {
  malloc_trim(0);  // what earlier models freed must not count as memory that a later one found
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;
  return out.good();
}
std::optional<std::int64_t> peak_resident_bytes() { return kilobytes("/proc/self/status", "VmHWM:"); }

std::int64_t cache_bytes(int level) {
  for (int i = 0; i < 8; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    std::ifstream level_file(folder + "level"), type_file(folder + "type"), size_file(folder + "size");
    int found = 0;
    std::string type, size;
    if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size)) continue;
    if (found != level || type == "Instruction") continue;
    const std::int64_t n = std::strtoll(size.c_str(), nullptr, 10);
    return n * (size.back() == 'M' ? 1024 * 1024 : 1024);
  }
  return 0;
}

}  // namespace treadle::cli

#include <treadle/backends/hardware_counters.hpp>

#if defined(__linux__) && __has_include(<linux/perf_event.h>)
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace treadle {
namespace {

/// A group of counters that are read at once; closed when the thread ends.
class Counters {
 public:
  Counters() {
    constexpr std::array<std::uint64_t, 3> what = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                                   PERF_COUNT_HW_CACHE_MISSES};
    for (std::size_t i = 0; i < files_.size(); ++i) {
      perf_event_attr a{};
      a.size = sizeof a;
      a.type = PERF_TYPE_HARDWARE;
      a.config = what[i];
      a.exclude_kernel = 1;
      a.exclude_hv = 1;
      a.read_format = PERF_FORMAT_GROUP;
      files_[i] = static_cast<int>(syscall(SYS_perf_event_open, &a, 0, -1, i == 0 ? -1 : files_[0], 0UL));
      if (files_[i] >= 0) continue;
      error_ = errno;
      close_all();
      return;
    }
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters() { close_all(); }

  int error() const { return error_; }
  HardwareCounts read() const {
    std::array<std::uint64_t, 4> group{};  // how many, then each
    if (files_[0] < 0 || ::read(files_[0], group.data(), sizeof group) != static_cast<ssize_t>(sizeof group)) return {};
    return {true, group[1], group[2], group[3]};
  }

 private:
  std::array<int, 3> files_ = {-1, -1, -1};
  int error_ = 0;

  void close_all() {
    for (int& f : files_) {
      if (f >= 0) close(f);
      f = -1;
    }
  }
};

const Counters& of_this_thread() {
  thread_local const Counters counters;
  return counters;
}

}  // namespace

std::string open_hardware_counters() {
  const int error = of_this_thread().error();
  if (error == 0) return "";
  std::string text = std::string("perf_event_open: ") + std::strerror(error);
  std::ifstream in("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  if (in >> level) text += "; /proc/sys/kernel/perf_event_paranoid is " + std::to_string(level) + ", 2 or less permits";
  if (error == ENOENT || error == ENODEV) text += "; this CPU (a virtual machine's, perhaps) shows no counters";
  return text;
}

HardwareCounts read_hardware_counters() { return of_this_thread().read(); }

}  // namespace treadle

#else

namespace treadle {
std::string open_hardware_counters() { return "this system has no perf_event_open"; }
HardwareCounts read_hardware_counters() { return {}; }
}  // namespace treadle

#endif

#include "peak.hpp"

#include "arguments.hpp"
#include "command.hpp"
#include "machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace treadle::cli {

namespace {
using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

/// Runs `work(thread)` on all threads at once, started together; the sum of what each returns (a rate).
template <class Work>
double together(int threads, Work work) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::atomic<int> waiting{threads};
  std::vector<std::thread> others;
  const auto body = [&](int i) {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) {
    }
    rates[static_cast<std::size_t>(i)] = work(i);
  };
  for (int i = 1; i < threads; ++i) others.emplace_back(body, i);
  body(0);
  for (std::thread& t : others) t.join();
  double sum = 0;
  for (const double r : rates) sum += r;
  return sum;
}

/// Iterations of the burn that take about a millisecond; measured once per table.
std::int64_t iterations_per_millisecond(const kernel::Table& table) {
  static std::mutex lock;
  static std::map<const kernel::Table*, std::int64_t> known;
  const std::lock_guard guard(lock);
  std::int64_t& n = known[&table];
  for (std::int64_t trial = 1000; n == 0; trial *= 4) {
    const auto start = Clock::now();
    table.fma_burn(trial);
    const double t = seconds_since(start);
    if (t > 1e-3) n = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(trial) * 1e-3 / t));
  }
  return n;
}

/// Reads every word; 32 sums so that the loads, not the additions, set the pace.
std::uint64_t read_all(const std::vector<std::uint64_t>& data) {
  std::uint64_t sums[32] = {};
  const std::uint64_t* p = data.data();
  for (std::size_t i = 0; i + 32 <= data.size(); i += 32)
    for (std::size_t j = 0; j < 32; ++j) sums[j] += p[i + j];
  std::uint64_t all = 0;
  for (const std::uint64_t s : sums) all ^= s;
  return all;
}
}  // namespace

double fma_gflops(const kernel::Table& table, int threads, double milliseconds) {
  const auto iterations = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(milliseconds * static_cast<double>(iterations_per_millisecond(table))));
  return together(threads, [&](int) {
    const auto start = Clock::now();
    const double flops = table.fma_burn(iterations);
    return flops / seconds_since(start) * 1e-9;
  });
}

double read_bandwidth(std::size_t bytes, int threads, double milliseconds) {
  std::atomic<std::uint64_t> sink{0};
  std::vector<std::vector<std::uint64_t>> buffers(static_cast<std::size_t>(threads));
  for (auto& b : buffers) b.assign(std::max<std::size_t>(bytes / sizeof(std::uint64_t), 32), 1);
  return together(threads, [&](int i) {
    const auto& buffer = buffers[static_cast<std::size_t>(i)];
    double best = 0, total = 0;
    std::uint64_t sum = read_all(buffer);
    while (total < milliseconds * 1e-3) {  // the best of slices: other processes only slow it down
      std::size_t times = 0;
      const auto start = Clock::now();
      double t = 0;
      do {
        sum ^= read_all(buffer);
        ++times;
        t = seconds_since(start);
      } while (t < 2e-3);
      best = std::max(best, static_cast<double>(times * buffer.size() * sizeof(std::uint64_t)) / t);
      total += t;
    }
    sink.fetch_xor(sum);
    return best * 1e-9;
  });
}

namespace {
int run(const std::string& threads_text) {
  const Machine m = machine();
  const int threads =
      threads_text.empty() ? m.cores : static_cast<int>(parse_integer(threads_text, "--threads", 1, 1024));
  fmt::print("{}, {} core{}\n\n", m.cpu, m.cores, m.cores == 1 ? "" : "s");
  fmt::print("{:<28} {:>12} {:>16}\n", "", "1 thread", threads == 1 ? "" : fmt::format("{} threads", threads));
  const auto line = [&](const std::string& name, const char* unit, auto measure) {
    const double one = measure(1);
    fmt::print("{:<28} {:>12.1f}", name, one);
    if (threads > 1) fmt::print(" {:>16.1f}", measure(threads));
    fmt::print("  {}\n", unit);
    std::fflush(stdout);
  };
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::IsaInfo& isa = kernel::isa_list()[i];
    const kernel::Table* table = kernel::find_table(isa.name);
    if (table == nullptr) {
      fmt::print("{:<28} {}\n", fmt::format("FMA f32, {}", isa.name),
                 isa.compiled ? "this CPU does not have it (or TREADLE_ISA caps it)" : "not compiled");
      continue;
    }
    line(fmt::format("FMA f32, {}", isa.name), "GFLOP/s", [&](int n) {
      double best = 0;
      for (int r = 0; r < 5; ++r) best = std::max(best, fma_gflops(*table, n, 20));
      return best;
    });
  }
  const std::int64_t l2 = std::max<std::int64_t>(cache_bytes(2), 256 * 1024), l3 = cache_bytes(3);
  const std::int64_t in_l2 = l2 / 2, in_l3 = l3 > 4 * l2 ? std::min(l3 / 4, 16 * l2) : 2 * l2;
  const std::int64_t in_dram = std::max<std::int64_t>(256 << 20, 4 * std::min<std::int64_t>(l3, 256 << 20));
  require_memory(static_cast<double>(in_dram), "measuring DRAM", "close something");
  line(fmt::format("L2 read ({})", bytes_text(static_cast<double>(in_l2))), "GB/s",
       [&](int n) { return read_bandwidth(static_cast<std::size_t>(in_l2), n, 60); });
  line(fmt::format("L3 read ({})", bytes_text(static_cast<double>(in_l3))), "GB/s",
       [&](int n) { return read_bandwidth(static_cast<std::size_t>(in_l3), n, 100); });
  line(fmt::format("DRAM read ({})", bytes_text(static_cast<double>(in_dram))), "GB/s",
       [&](int n) { return read_bandwidth(static_cast<std::size_t>(in_dram / n), n, 300); });
  fmt::print("\nBuffer sizes are per thread, except DRAM's, which is shared out.\n");
  return 0;
}
}  // namespace

Command add_peak(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "peak", "Measure what this machine can do at best: FMA on every ISA, and reading L2, L3 and DRAM.");
  static std::string threads;
  sub->add_option("--threads", threads, "Threads of the second column (default: all cores)")->type_name("N");
  return {sub, [] { return run(threads); }};
}

}  // namespace treadle::cli

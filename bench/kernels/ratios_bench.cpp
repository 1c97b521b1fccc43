// Ratios of times. Near 1 should be: subnormal numbers against ordinary ones, and the default number of threads on one
// CPU against one thread. Near 2: one thread against two. The two of a row take turns; `ratio` is that of their
// medians.

#include "turns.hpp"

#include <treadle/backends/kernel.hpp>

#include <sched.h>

#include <string>

namespace {

using namespace treadle;
using namespace treadle::bench;

/// Square products of 256.
Graph product() {
  Builder g;
  const Node x = g.input("x", f32, {256, 256});
  g.output("y", matmul(x, x));
  return g.finish();
}

void subnormal(benchmark::State& state, const char* isa) {
  const Graph graph = product();
  Subject small(graph, {.backend = "simd", .isa = isa}, 1e-21f), usual(graph, {.backend = "simd", .isa = isa}, 1.0f);
  compare(state, small, usual);
}

void pinned(benchmark::State& state) {
  cpu_set_t before, one;
  sched_getaffinity(0, sizeof(before), &before);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof(one), &one);
  {
    const Graph graph = product();
    Subject usual(graph, {.backend = "tbb"}, 1.0f), single(graph, {.backend = "tbb", .threads = 1}, 1.0f);
    compare(state, usual, single);
  }
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::Table* t = kernel::find_table(kernel::isa_list()[i].name);
    if (t != nullptr) benchmark::RegisterBenchmark((std::string("subnormal/") + t->isa).c_str(), subnormal, t->isa);
  }
  benchmark::RegisterBenchmark("default_threads_on_one_cpu", pinned);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

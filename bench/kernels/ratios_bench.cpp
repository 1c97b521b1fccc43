// Ratios of times that should be near 1: subnormal numbers against ordinary ones, and the default number of threads on
// one CPU against one thread. The two of a row take turns; `ratio` is that of their medians.

#include <treadle/backends/kernel.hpp>
#include <treadle/treadle.hpp>

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace {

using namespace treadle;

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// Square products of 256, every entry of a the same.
struct Product {
  BoundModel model;
  std::vector<float> a, b, y;

  Product(BindOptions options, float entry) : model(graph(), {}, options), a(n * n, entry), b(n * n, 1.0f), y(n * n) {
    model.bind_dims({});
  }
  static Graph graph() {
    Builder g;
    const Node a = g.input("a", f32, {n, n}), b = g.input("b", f32, {n, n});
    g.output("y", matmul(a, b));
    return g.finish();
  }
  /// Seconds on the clock on the wall.
  double run() {
    const std::int64_t shape[] = {n, n};
    const auto start = std::chrono::steady_clock::now();
    model.run({{"a", dense_view(a.data(), f32, shape)}, {"b", dense_view(b.data(), f32, shape)}},
              {{"y", dense_view(y.data(), f32, shape)}});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  static constexpr std::int64_t n = 256;
};

void compare(benchmark::State& state, Product& one, Product& other) {
  std::vector<double> ones, others;
  for (auto _ : state) {
    ones.push_back(one.run());
    others.push_back(other.run());
  }
  state.counters["ratio"] = median(ones) / median(others);
}

void subnormal(benchmark::State& state, const char* isa) {
  Product small({.backend = "simd", .isa = isa}, 1e-39f), usual({.backend = "simd", .isa = isa}, 1.0f);
  compare(state, small, usual);
}

void pinned(benchmark::State& state) {
  cpu_set_t before, one;
  sched_getaffinity(0, sizeof(before), &before);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof(one), &one);
  {
    Product usual({.backend = "tbb"}, 1.0f), single({.backend = "tbb", .threads = 1}, 1.0f);
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

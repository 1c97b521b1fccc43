// Attention on every ISA of this machine, one thread: useful GFLOP/s, and the fraction of the FMA peak measured in the
// same run.

#include "yardstick.hpp"

#include <treadle/backends/kernel.hpp>
#include <treadle/graph/mask/tiles.hpp>
#include <treadle/graph/scalar/parse.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace treadle;
using namespace treadle::bench;
using Index = std::int64_t;

double peak(const kernel::Table& t) {
  double best = 0;
  for (int i = 0; i < 20; ++i) best = std::max(best, flops_per_second(t));
  return best;
}

void attention(benchmark::State& state, const kernel::Table* t, bool causal) {
  const Index n = state.range(0), d = state.range(1);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> data(static_cast<std::size_t>(4 * n * d));
  for (float& x : data) x = normal(random);
  const Index shape[] = {1, 1, n, d};
  kernel::Attention a;
  TensorView* views[] = {&a.q, &a.k, &a.v, &a.out};
  for (int i = 0; i < 4; ++i) *views[i] = dense_view(data.data() + i * n * d, f32, shape);
  a.scale = 1.0f / std::sqrt(static_cast<float>(d));

  scalar::Pool pool;
  scalar::Extents extents;
  extents.q_len = extents.k_len = n;
  mask::Tiles tiles;
  if (causal) {
    const int root = scalar::parse(pool, "k <= q").root;  // before the pool is looked at
    tiles = mask::Tiles(pool, root, extents);
    a.mask = &tiles;
  }

  const kernel::Work work = t->attention.plan(a);
  std::vector<float> memory(work.workspace_bytes / 4 + 16);
  void* workspace = memory.data();
  std::size_t space = memory.size() * 4;
  std::align(64, work.workspace_bytes, workspace, space);
  const double pairs = causal ? 0.5 * static_cast<double>(n) * static_cast<double>(n + 1)
                              : static_cast<double>(n) * static_cast<double>(n);
  const double flops = 4.0 * pairs * static_cast<double>(d);
  const double limit = peak(*t);
  double best = 1e9;
  for (auto _ : state) {
    const double start = seconds();
    t->attention.run(a, 0, work.items, workspace);
    best = std::min(best, seconds() - start);
    benchmark::ClobberMemory();
  }
  state.counters["GFLOP/s"] = flops / best * 1e-9;
  state.counters["peak"] = limit * 1e-9;
  state.counters["fraction"] = flops / best / limit;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::Table* t = kernel::find_table(kernel::isa_list()[i].name);
    if (t == nullptr) continue;
    for (bool causal : {false, true}) {
      const std::string name = std::string(t->isa) + (causal ? "/causal" : "/dense");
      auto* b = benchmark::RegisterBenchmark(name.c_str(), attention, t, causal);
      for (Index n : {128, 512, 2048, 8192}) b->Args({n, 64});
      b->Args({2048, 128})->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

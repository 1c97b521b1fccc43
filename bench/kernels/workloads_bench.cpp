// The workloads that docs/performance.md speaks of, as models of one to a dozen nodes on every ISA of this machine, one
// thread: the fraction of the FMA peak, or of a pure read of the same bytes, measured in the same run.

#include "subject.hpp"
#include "yardstick.hpp"

#include <treadle/backends/kernel.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace treadle;
using namespace treadle::bench;
using Index = std::int64_t;

/// Reads all of `data`; 64 sums, so that loads and not additions set the pace.
double bytes_per_second(const std::vector<float>& data) {
  const double start = seconds();
  float sums[64] = {};
  for (std::size_t i = 0; i + 64 <= data.size(); i += 64)
    for (std::size_t j = 0; j < 64; ++j) sums[j] += data[i + j];
  benchmark::DoNotOptimize(sums);
  return static_cast<double>(data.size() * sizeof(float)) / (seconds() - start);
}

struct Workload {
  std::string name;
  Graph graph;
  bool read_bound = false;  ///< compared with a read of its inputs
  double flops = 0;         ///< useful; 0: what the plan says
};

/// The best of the runs, beside the best of the yardstick between them.
void measure(benchmark::State& state, const kernel::Table* table, const Workload* w) {
  Subject subject(w->graph, {.backend = "simd", .isa = table->isa});
  double flops = w->flops;
  if (flops == 0)
    for (const StepInfo& step : subject.model.steps()) flops += step.useful_flops;
  std::vector<float> read;
  if (w->read_bound) {
    std::size_t size = subject.input_size;
    for (const StepInfo& step : subject.model.steps())
      if (step.op == op::linear) size += static_cast<std::size_t>(step.bytes / 4);
    read.assign(size, 1.0f);
  }
  double best = 1e9, yardstick = 0;
  for (auto _ : state) {
    const double start = seconds();
    subject.run();
    best = std::min(best, seconds() - start);
    yardstick = std::max(yardstick, w->read_bound ? bytes_per_second(read) : flops_per_second(*table));
  }
  if (w->read_bound) {
    const double rate = static_cast<double>(read.size() * sizeof(float)) / best;
    state.counters["GB/s"] = rate * 1e-9;
    state.counters["fraction"] = rate / yardstick;
  } else {
    state.counters["GFLOP/s"] = flops / best * 1e-9;
    state.counters["fraction"] = flops / best / yardstick;
  }
}

Graph attend(const AttentionVariant& variant, Index heads, Index n, Index d, Index queries = 0) {
  Builder g;
  const Node q = g.input("q", f32, {1, heads, queries == 0 ? n : queries, d}), k = g.input("k", f32, {1, heads, n, d}),
             v = g.input("v", f32, {1, heads, n, d});
  g.output("y", attend(variant, AttentionInputs{q, k, v}));
  return optimise(g.finish());
}

Graph product(Index rows, Index depth, Index width) {
  Builder g;
  g.output("y", linear("w", g.input("x", f32, {rows, depth}), {.width = width}));
  return optimise(g.finish());
}

std::vector<Workload> workloads() {
  std::vector<Workload> all;
  const auto shape = [](Index h, Index n, Index d) {
    return "H" + std::to_string(h) + "_N" + std::to_string(n) + "_D" + std::to_string(d);
  };
  const auto softmax = [&](const char* name, const AttentionVariant& variant, Index h, Index n, Index d) {
    all.push_back({std::string(name) + "/" + shape(h, n, d), attend(variant, h, n, d)});
  };
  for (const auto& [h, n, d] : {std::array<Index, 3>{8, 2048, 64}, {16, 1024, 128}, {8, 2048, 32}, {8, 512, 64}})
    softmax("dense", {}, h, n, d);
  softmax("causal", causal, 8, 2048, 64);
  softmax("causal", causal, 8, 512, 64);
  for (const Index n : {4096, 16384, 65536}) softmax("window", window(256, 0), 1, n, 64);
  softmax("big_bird", big_bird({.window = 3, .first = 1, .last = 1}), 8, 4096, 64);
  // Of the smallest number that the recurrence needs: S += φ(k) vᵀ and φ(q) S.
  for (const bool past : {true, false})
    for (const Index n : {1024, 16384, 65536})
      all.push_back({std::string(past ? "linear_causal/" : "linear/") + shape(1, n, 64),
                     attend(variants::linear({.causal = past}), 1, n, 64), false,
                     4.0 * 64 * 64 * static_cast<double>(n)});
  for (const auto& [m, k, n] :
       {std::array<Index, 3>{2048, 768, 768}, {2048, 768, 3072}, {2048, 3072, 768}, {128, 768, 768}, {8, 768, 3072}})
    all.push_back(
        {"product/" + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n), product(m, k, n)});
  all.push_back({"product/1x768x3072", product(1, 768, 3072), true});
  for (const auto& [width, heads] : {std::pair<Index, Index>{512, 8}, {768, 12}})
    for (const auto& [b, n] : {std::pair<Index, Index>{1, 128}, {1, 512}, {1, 2048}, {8, 128}})
      all.push_back({"encoder/d" + std::to_string(width) + "_B" + std::to_string(b) + "_N" + std::to_string(n),
                     optimise(encoder_layer(b, n, width, heads))});
  for (const Index heads : {8, 32})
    for (const Index n : {4096, 32768})
      all.push_back({"decode/" + shape(heads, n, 64), attend({}, heads, n, 64, 1), true});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Workload> all = workloads();
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::Table* table = kernel::find_table(kernel::isa_list()[i].name);
    if (table == nullptr) continue;
    for (const Workload& w : all)
      benchmark::RegisterBenchmark((std::string(table->isa) + "/" + w.name).c_str(), measure, table, &w)
          ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

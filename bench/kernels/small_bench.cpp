// What is not a matter of kernels' speed: what a node costs beside its work, how near attention is to float64, and how
// memory grows with the length. One thread.

#include "subject.hpp"
#include "yardstick.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace treadle;
using namespace treadle::bench;
using Index = std::int64_t;

std::vector<float> normal_numbers(Index count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& v : x) v = normal(random);
  return x;
}

Graph layers(Index width, Index count, Index length) {
  Builder b;
  Node x = b.input("x", f32, {1, length, width});
  x = repeat("h", count, x, [&](Node h) {
    h = h + self_attention("attn", layer_norm("norm1", h), {.heads = 4, .mask = causal});
    return h + ffn("mlp", layer_norm("norm2", h), {.hidden = 4 * width});
  });
  b.output("y", x);
  return optimise(b.finish());
}

/// Additions of one number: all of the time is the node's.
Graph additions(Index count) {
  Builder b;
  const Node x = b.input("x", f32, {1});
  Node y = x;
  for (Index i = 0; i < count; ++i) y = y + x;
  b.output("y", y);
  return b.finish();
}

void nodes(benchmark::State& state, Graph (*graph)()) {
  Subject subject(graph());
  const auto steps = static_cast<double>(subject.model.steps().size());
  double best = 1e9;
  for (auto _ : state) {
    const double start = seconds();
    for (int i = 0; i < 20; ++i) subject.run();
    best = std::min(best, (seconds() - start) / 20);
  }
  state.counters["nodes"] = steps;
  state.counters["ns_per_node"] = best * 1e9 / steps;
}

/// Dense attention of N(0, 1) inputs against float64.
void accuracy(benchmark::State& state) {
  const Index n = state.range(0), d = state.range(1);
  Builder b;
  const Node q = b.input("q", f32, {1, 1, n, d}), k = b.input("k", f32, {1, 1, n, d}),
             v = b.input("v", f32, {1, 1, n, d});
  b.output("y", attention(q, k, v));
  const Graph g = b.finish();
  std::vector<std::vector<float>> data;
  for (unsigned seed = 1; seed <= 3; ++seed) data.push_back(normal_numbers(n * d, seed));
  std::vector<float> fast(static_cast<std::size_t>(n * d));
  std::vector<double> exact(fast.size());
  const Index shape[] = {1, 1, n, d};
  const std::vector<NamedTensor> inputs{{"q", dense_view(data[0].data(), f32, shape)},
                                        {"k", dense_view(data[1].data(), f32, shape)},
                                        {"v", dense_view(data[2].data(), f32, shape)}};
  BoundModel simd(g, {}, {.backend = "simd"}), reference(g, {}, {.backend = "reference", .float64 = true});
  simd.bind_dims({});
  reference.bind_dims({});
  const std::vector<NamedTensor> want{{"y", dense_view(exact.data(), f64, shape)}},
      found{{"y", dense_view(fast.data(), f32, shape)}};
  reference.run(inputs, want);
  double most = 0, squares = 0;
  for (auto _ : state) {
    simd.run(inputs, found);
    most = squares = 0;
    for (std::size_t i = 0; i < fast.size(); ++i) {
      const double error = std::abs(static_cast<double>(fast[i]) - exact[i]);
      most = std::max(most, error);
      squares += error * error;
    }
  }
  state.counters["max_error"] = most;
  state.counters["rms_error"] = std::sqrt(squares / static_cast<double>(fast.size()));
}

/// A dense encoder layer: what a run touches beside parameters and the caller's tensors.
void memory(benchmark::State& state) {
  const Index n = state.range(0);
  const Graph g = optimise(encoder_layer(1, n, 512, 8));
  BoundModel model(g, Parameters::random(g, 1), {.backend = "simd"});
  for (auto _ : state) model.bind_dims({});
  const auto planned = static_cast<double>(model.planned_bytes()), arena = static_cast<double>(model.arena_bytes());
  state.counters["planned_MB"] = planned * 1e-6;
  state.counters["bytes_per_token"] = planned / static_cast<double>(n);
  state.counters["workspace_KB"] = (planned - arena) / 1024;
}

}  // namespace

BENCHMARK_CAPTURE(nodes, additions, [] { return additions(200); });
BENCHMARK_CAPTURE(nodes, six_layers_of_width_64_one_token, [] { return layers(64, 6, 1); });
BENCHMARK_CAPTURE(nodes, six_layers_of_width_64_16_tokens, [] { return layers(64, 6, 16); });
BENCHMARK(accuracy)->Args({2048, 64})->Args({2048, 128})->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(memory)->Arg(1024)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK_MAIN();

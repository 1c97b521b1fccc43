// Two threads against one, each pair in turns: time with one over time with two, near 2 where the work can be divided.
// A program of its own: oneTBB looks once at how many CPUs there are.

#include "turns.hpp"

#include <optional>
#include <string>
#include <utility>

namespace {

using namespace treadle;
using namespace treadle::bench;

Graph attention_of(std::int64_t length, std::optional<Mask> mask) {
  Builder g;
  const Node x = g.input("x", f32, {1, 8, length, 64});
  g.output("y", attention(x, x, x, {.mask = mask}));
  return optimise(g.finish());
}

/// Time with one thread over time with two.
void two_threads(benchmark::State& state, Graph (*graph)()) {
  Subject one(graph(), {.backend = "tbb", .threads = 1}, 0.5f), two(graph(), {.backend = "tbb", .threads = 2}, 0.5f);
  compare(state, one, two);
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, Graph (*)()> models[] = {
      {"dense_N1024", [] { return attention_of(1024, {}); }},
      {"causal_N1024", [] { return attention_of(1024, causal); }},
      {"window_N4096", [] { return attention_of(4096, window(256, 0)); }},
      {"encoder_B1_N1024", [] { return optimise(encoder_layer(1, 1024, 512, 8)); }},
      {"encoder_B8_N128", [] { return optimise(encoder_layer(8, 128, 512, 8)); }},
  };
  for (const auto& [name, graph] : models)
    benchmark::RegisterBenchmark((std::string("two_threads/") + name).c_str(), two_threads, graph)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

// What a score function leaves of plain attention's speed: time(plain) / time(with it), through the tile evaluator and
// inlined, and through both together with a mask that leaves partial tiles alone. One head of 2048 tokens, one thread;
// the three take turns, and the medians are compared.

#include "scores.hpp"
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
using bench::median;
using bench::seconds;

struct Row {
  BoundModel model;
  std::vector<NamedTensor> inputs;
  std::vector<double> times;
};

void measure(benchmark::State& state, const char* isa, std::int64_t head_dim, const scalar::Function& score,
             bool masked) {
  constexpr std::int64_t length = 2048;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> data(static_cast<std::size_t>(4 * length * head_dim));
  for (float& x : data) x = normal(random);
  float slope = 0.0625f;
  std::vector<std::int32_t> groups(length);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<std::int32_t>(i % 5);
  const std::int64_t shape[] = {1, 1, length, head_dim}, one[] = {1}, all[] = {length};
  const auto part = [&](int i) { return dense_view(data.data() + i * length * head_dim, f32, shape); };
  const std::vector<NamedTensor> plain{{"q", part(0)}, {"k", part(1)}, {"v", part(2)}};
  std::vector<NamedTensor> scored = plain;
  if (&score == &scores_bench::alibi_score) scored.push_back({"slopes", dense_view(&slope, f32, one)});
  if (masked) scored.push_back({"groups", dense_view(groups.data(), i32, all)});
  const std::vector<NamedTensor> out{{"y", part(3)}};

  std::vector<Row> rows;
  const auto add = [&](const scalar::Function* f, bool inlined, const std::vector<NamedTensor>& inputs) {
    BoundModel m(scores_bench::graph(head_dim, f, masked && f != nullptr), {},
                 {.backend = "simd", .isa = isa, .inlined = inlined});
    m.bind_dims({{"seq", length}});
    rows.push_back({std::move(m), inputs, {}});
  };
  add(nullptr, true, plain);
  add(&score, false, scored);
  add(&score, true, scored);
  for (auto _ : state)
    for (Row& r : rows) {
      const double start = seconds();
      r.model.run(r.inputs, out);
      r.times.push_back(seconds() - start);
    }
  const double base = median(rows[0].times);
  state.counters["in_tiles"] = base / median(rows[1].times);
  state.counters["inlined"] = base / median(rows[2].times);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 0; i < kernel::isa_count; ++i) {
    const char* isa = kernel::isa_list()[i].name;
    if (kernel::find_table(isa) == nullptr) continue;
    for (const std::int64_t head_dim : {64, 128}) {
      const auto add = [&](const char* name, const scalar::Function& score, bool masked = false) {
        benchmark::RegisterBenchmark(
            (std::string(isa) + "/" + name + "/D" + std::to_string(head_dim)).c_str(),
            [=, &score](benchmark::State& state) { measure(state, isa, head_dim, score, masked); })
            ->Iterations(31)
            ->Unit(benchmark::kMillisecond);
      };
      add("ALiBi", scores_bench::alibi_score);
      add("softcap", scores_bench::softcap_score);
      add("ALiBi_and_mask", scores_bench::alibi_score, true);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

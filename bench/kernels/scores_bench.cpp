// What a score function costs: the time of attention with it, through the tile evaluator and inlined, over the time of
// plain attention. One head, one thread; the three take turns, and the medians are compared.
//
//   bench_scores [length]

#include "scores.hpp"
#include "yardstick.hpp"

#include <treadle/backends/kernel.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace treadle;
using bench::seconds;

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

struct Row {
  BoundModel model;
  std::vector<NamedTensor> inputs;
  std::vector<double> times;
};

void measure(const char* isa, std::int64_t length, std::int64_t head_dim, const char* name,
             const scalar::Function& score) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> data(static_cast<std::size_t>(4 * length * head_dim));
  for (float& x : data) x = normal(random);
  float slope = 0.0625f;
  const std::int64_t shape[] = {1, 1, length, head_dim}, one[] = {1};
  const auto part = [&](int i) { return dense_view(data.data() + i * length * head_dim, f32, shape); };
  const std::vector<NamedTensor> plain{{"q", part(0)}, {"k", part(1)}, {"v", part(2)}};
  std::vector<NamedTensor> scored = plain;
  if (&score == &scores_bench::alibi_score) scored.push_back({"slopes", dense_view(&slope, f32, one)});
  const std::vector<NamedTensor> out{{"y", part(3)}};

  std::vector<Row> rows;
  const auto add = [&](const scalar::Function* f, bool inlined, const std::vector<NamedTensor>& inputs) {
    BoundModel m(scores_bench::graph(head_dim, f), {}, {.backend = "simd", .isa = isa, .inlined = inlined});
    m.bind_dims({{"seq", length}});
    rows.push_back({std::move(m), inputs, {}});
  };
  add(nullptr, true, plain);
  add(&score, false, scored);
  add(&score, true, scored);
  for (int turn = -2; turn < 31; ++turn)
    for (Row& r : rows) {
      const double start = seconds();
      r.model.run(r.inputs, out);
      if (turn >= 0) r.times.push_back(seconds() - start);
    }
  const double base = median(rows[0].times);
  std::printf("%-8s %-8s D %3d  plain %7.3f ms   in tiles %.3f   inlined %.3f\n", isa, name, static_cast<int>(head_dim),
              base * 1e3, median(rows[1].times) / base, median(rows[2].times) / base);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t length = argc > 1 ? std::atoll(argv[1]) : 2048;
  for (int i = 0; i < kernel::isa_count; ++i) {
    const char* isa = kernel::isa_list()[i].name;
    if (kernel::find_table(isa) == nullptr) continue;
    for (const std::int64_t head_dim : {64, 128}) {
      measure(isa, length, head_dim, "ALiBi", scores_bench::alibi_score);
      measure(isa, length, head_dim, "softcap", scores_bench::softcap_score);
    }
  }
}

#pragma once
// What the programs of this folder share: a variant runs on the vector kernels and on the float64 oracle, which
// evaluates the same mask and score for every pair of a dense matrix.

#include <treadle/treadle.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace treadle::examples {

/// A table that the variant looks up: i32 or f32, of rank 1 or 2.
struct TableInput {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> integers;
  std::vector<float> numbers;

  DType dtype() const { return numbers.empty() ? i32 : f32; }
  TensorView view() {
    return numbers.empty() ? dense_view(integers.data(), i32, shape) : dense_view(numbers.data(), f32, shape);
  }
};

/// Prints how many pairs the variant keeps; returns 1, and says so, if kernel and oracle differ.
inline int try_variant(const char* title, const AttentionVariant& variant, std::vector<TableInput> tables = {},
                       std::int64_t length = 256) {
  constexpr std::int64_t heads = 4, head_dim = 16;
  Builder g;
  const Node q = g.input("q", f32, {1, heads, seq, head_dim}), k = g.input("k", f32, {1, heads, seq, head_dim}),
             v = g.input("v", f32, {1, heads, seq, head_dim});
  for (const TableInput& t : tables) {
    if (t.shape.size() == 1) g.input(t.name, t.dtype(), {t.shape[0]});
    if (t.shape.size() == 2) g.input(t.name, t.dtype(), {t.shape[0], t.shape[1]});
  }
  g.output("out", attend(variant, {q, k, v}));
  const Graph graph = optimise(g.finish());

  const std::int64_t shape[] = {1, heads, length, head_dim};
  const auto size = static_cast<std::size_t>(heads * length * head_dim);
  std::mt19937 random(7);
  std::vector<float> q_data(size), k_data(size), v_data(size), out(size);
  for (auto* data : {&q_data, &k_data, &v_data})
    for (float& x : *data) x = static_cast<float>(random()) * 0x1p-31f - 1;
  std::vector<double> want(size);
  std::vector<NamedTensor> inputs = {{"q", dense_view(q_data.data(), f32, shape)},
                                     {"k", dense_view(k_data.data(), f32, shape)},
                                     {"v", dense_view(v_data.data(), f32, shape)}};
  for (TableInput& t : tables) inputs.push_back({t.name, t.view()});

  const Parameters none;
  BoundModel model(graph, none, {.backend = "simd"}), oracle(graph, none, {.backend = "reference", .float64 = true});
  model.bind_dims({{"seq", length}});
  oracle.bind_dims({{"seq", length}});
  const NamedTensor got[] = {{"out", dense_view(out.data(), f32, shape)}},
                    truth[] = {{"out", dense_view(want.data(), f64, shape)}};
  model.run(inputs, got);
  oracle.run(inputs, truth);

  double pairs = 0, worst = 0;
  for (const StepInfo& step : model.steps())
    if (step.op == op::attention) pairs += step.useful_flops / (4 * head_dim);
  for (std::size_t i = 0; i < size; ++i) worst = std::max(worst, std::abs(static_cast<double>(out[i]) - want[i]));
  std::printf("%s: %.0f of %lld pairs, %s the dense oracle\n", title, pairs,
              static_cast<long long>(heads * length * length), worst < 1e-5 ? "as" : "NOT as");
  return worst < 1e-5 ? 0 : 1;
}

}  // namespace treadle::examples

// What each pass is good for: a model where it finds something, optimised with all passes and with all but that one, on
// one thread of the best ISA. `ratio` is time without / time with, of the medians of turns; bytes are what the steps
// read and write, and `peak` what a run touches beside parameters and the caller's tensors.

#include "subject.hpp"
#include "yardstick.hpp"

#include <treadle/ops/constant.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace treadle;
using namespace treadle::bench;
using Index = std::int64_t;

constexpr Index n = 512, width = 512, heads = 8;

Graph finished(const Node& y) {
  y.builder->output("y", y);
  return y.builder->finish();
}

Graph encoder() { return encoder_layer(1, n, width, heads); }

/// Bias, GELU and residual around two projections.
Graph feed_forward() {
  Builder b;
  const Node x = b.input("x", f32, {n, width});
  return finished(x + ffn("mlp", x, {.hidden = 4 * width, .activation = gelu}));
}

/// Token ids to the logits of the last token.
Graph language_model() {
  Builder b;
  const Node ids = b.input("ids", i32, {1, n});
  Node h = layer_norm(
      "norm0", embedding("wte", ids, {.vocabulary = 1000, .width = width}) + learned_positions("wpe", {.length = n}));
  h = h + self_attention("attn", layer_norm("norm1", h), {.heads = heads, .mask = causal});
  h = h + ffn("mlp", layer_norm("norm2", h), {.hidden = 4 * width});
  return finished(slice(linear("head", layer_norm("norm3", h), {.width = 1000}), 1, n - 1, 1));
}

/// softmax(q kᵀ / √d + mask) v as its equation says it.
Graph written_out_attention() {
  Builder b;
  const Node q = b.input("q", f32, {1, heads, n, 64}), k = b.input("k", f32, {1, heads, n, 64}),
             v = b.input("v", f32, {1, heads, n, 64});
  const Node scores = select(mask_node(b, causal, n, n), scale(matmul(q, transpose(k)), 0.125),
                             -std::numeric_limits<double>::infinity());
  return finished(matmul(softmax(scores), v));
}

/// Causal linear attention (Katharopoulos et al. 2020, eq. 9) as its equation says it.
Graph written_out_linear_attention() {
  Builder b;
  const Node q = b.input("q", f32, {1, heads, n, 64}), k = b.input("k", f32, {1, heads, n, 64}),
             v = b.input("v", f32, {1, heads, n, 64});
  const Node weights =
      select(mask_node(b, causal, n, n),
             matmul(activate(q, activation::elu_plus_one), transpose(activate(k, activation::elu_plus_one))), 0.0);
  return finished(matmul(weights, v) * exp(scale(log(matmul(weights, full(b, {1, 1, n, 1}, 1))), -1)));
}

/// Factors on activations, as some papers write them.
Graph scaled() {
  Builder b;
  const Node x = b.input("x", f32, {n, width});
  return finished(linear("down", scale(activate(scale(linear("up", x, {.width = width}), 0.5), activation::gelu), 2),
                         {.width = width}));
}

/// SwiGLU (Shazeer 2020).
Graph gated() {
  Builder b;
  return finished(gated_ffn("mlp", b.input("x", f32, {n, width}), {.hidden = 1024}));
}

/// An activation written twice, once for each branch.
Graph branches() {
  Builder b;
  const Node x = b.input("x", f32, {n, width});
  const auto activated = [&] { return activate(x, activation::gelu); };
  return finished(linear("a", activated(), {.width = 64}) + linear("b", activated(), {.width = 64}));
}

/// Positions of a fixed length.
Graph fixed_positions() {
  Builder b;
  const Node x = b.input("x", f32, {64, 16, 32});
  return finished(x + scale(sinusoidal_positions(b, 16, 32), 0.5));
}

/// An auxiliary head that this user does not ask for.
Graph unused_head() {
  Builder b;
  const Node h = ffn("mlp", b.input("x", f32, {n, width}), {.hidden = width});
  linear("auxiliary", h, {.width = 4 * width});
  return finished(h);
}

struct Row {
  const char* pass;
  const char* model;
  Graph (*graph)();
  Pass without;
};

constexpr Row rows[] = {
    {"remove_dead_nodes", "unused_head", unused_head, remove_dead_nodes},
    {"merge_common_subexpressions", "branches", branches, merge_common_subexpressions},
    {"fold_constants", "fixed_positions", fixed_positions, fold_constants},
    {"move_slices_up", "language_model", language_model, move_slices_up},
    {"fuse_attention", "written_out_attention", written_out_attention, fuse_attention},
    {"fuse_linear_attention", "written_out_linear_attention", written_out_linear_attention, fuse_linear_attention},
    {"fold_scales", "scaled", scaled, fold_scales},
    {"fuse_epilogue", "feed_forward", feed_forward, fuse_epilogue},
    {"fuse_gated_linear", "gated", gated, fuse_gated_linear},
    {"fuse_embedding", "language_model", language_model, fuse_embedding},
    {"fuse_add_norm", "encoder", encoder, fuse_add_norm},
    {"merge_qkv", "encoder", encoder, merge_qkv},
};

double seconds_of(Subject& s) {
  const double start = seconds();
  s.run();
  return seconds() - start;
}

double bytes_moved(const Subject& s) {
  double bytes = 0;
  for (const StepInfo& step : s.model.steps()) bytes += step.bytes;
  return bytes;
}

/// Every iteration binds both models anew, one or the other first: where their memory lies in the caches changes times
/// by several per cent.
void compare(benchmark::State& state, const Row& row) {
  const Graph all = optimise(row.graph()), but_one = optimise(row.graph(), no_observer{}, row.without);
  std::vector<double> ratios;
  for (auto _ : state) {
    const bool swapped = ratios.size() % 2 != 0;
    Subject first(swapped ? but_one : all), second(swapped ? all : but_one);
    Subject &with = swapped ? second : first, &without = swapped ? first : second;
    std::vector<double> withs, withouts;
    for (int turn = 0; turn < 9; ++turn) {
      withs.push_back(seconds_of(with));
      withouts.push_back(seconds_of(without));
    }
    ratios.push_back(median(withouts) / median(withs));
    state.counters["MB_with"] = bytes_moved(with) * 1e-6;
    state.counters["MB_without"] = bytes_moved(without) * 1e-6;
    state.counters["peak_MB_with"] = static_cast<double>(with.model.planned_bytes()) * 1e-6;
    state.counters["peak_MB_without"] = static_cast<double>(without.model.planned_bytes()) * 1e-6;
  }
  state.counters["ratio"] = median(ratios);
  state.counters["least"] = *std::min_element(ratios.begin(), ratios.end());
  state.counters["most"] = *std::max_element(ratios.begin(), ratios.end());
}

}  // namespace

int main(int argc, char** argv) {
  for (const Row& row : rows)
    benchmark::RegisterBenchmark((std::string(row.pass) + "/" + row.model).c_str(), compare, row)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(12);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

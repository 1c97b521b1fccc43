#pragma once
// Two models that take turns, and the ratio of their times.

#include <treadle/treadle.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace treadle::bench {

inline double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// A model of one input x and one output y, all of x the same number.
struct Subject {
  BoundModel model;
  std::vector<float> x, y;
  TensorView in, out;

  Subject(const Graph& graph, BindOptions options, float entry) : model(graph, Parameters::random(graph, 1), options) {
    model.bind_dims({});
    in = model.input_spec("x");
    out = model.output_spec("y");
    x.assign(static_cast<std::size_t>(in.size()), entry);
    y.resize(static_cast<std::size_t>(out.size()));
    in.data = x.data();
    out.data = y.data();
  }
  /// Seconds on the clock on the wall.
  double run() {
    const auto start = std::chrono::steady_clock::now();
    model.run({{"x", in}}, {{"y", out}});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

/// `ratio`: the median time of one over that of the other.
inline void compare(benchmark::State& state, Subject& one, Subject& other) {
  std::vector<double> ones, others;
  for (auto _ : state) {
    ones.push_back(one.run());
    others.push_back(other.run());
  }
  state.counters["ratio"] = median(ones) / median(others);
}

}  // namespace treadle::bench

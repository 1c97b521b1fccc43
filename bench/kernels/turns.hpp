#pragma once
// Two models that take turns, and the ratio of their times on the clock on the wall.

#include "subject.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

namespace treadle::bench {

/// `ratio`: the median time of one over that of the other.
inline void compare(benchmark::State& state, Subject& one, Subject& other) {
  const auto seconds = [](Subject& s) {
    const auto start = std::chrono::steady_clock::now();
    s.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<double> ones, others;
  for (auto _ : state) {
    ones.push_back(seconds(one));
    others.push_back(seconds(other));
  }
  state.counters["ratio"] = median(ones) / median(others);
}

}  // namespace treadle::bench

#pragma once
// Measured limits of the machine: the yardsticks of `compare` and what `treadle peak` prints.

#include <treadle/backends/kernel.hpp>

#include <cstddef>

namespace treadle::cli {

/// GFLOP/s of independent FMAs on `threads` threads at once, for about `milliseconds`.
double fma_gflops(const kernel::Table& table, int threads, double milliseconds);

/// GB/s of reading a buffer of `bytes` a thread over and over, on `threads` threads at once.
double read_bandwidth(std::size_t bytes, int threads, double milliseconds);

}  // namespace treadle::cli

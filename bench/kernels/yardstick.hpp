#pragma once
// What kernels are measured against, and by which clock.

#include <treadle/backends/kernel.hpp>

#include <time.h>

namespace treadle::bench {

/// CPU time of this thread alone, so that a busy machine disturbs less.
inline double seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// FLOP/s of independent FMAs, in one short run: take the best of several, as other programs disturb.
inline double flops_per_second(const kernel::Table& t) {
  const double start = seconds();
  const double flops = t.fma_burn(1'000'000);
  return flops / (seconds() - start);
}

}  // namespace treadle::bench

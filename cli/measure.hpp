#pragma once
// Timing variants against each other: all are bound first, then take turns, so that a change of the machine's mood
// meets all alike.

#include "attention_model.hpp"
#include "variants.hpp"

#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/trace.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace treadle::cli {

struct MeasureOptions {
  std::string backend = "tbb", isa;
  int threads = 1;
  int repetitions = 0;        ///< rounds; 0: as many as the budget allows
  double budget_seconds = 3;  ///< for all variants together, where repetitions are not given
  int least_repetitions = 3;  ///< whatever the budget says
  Trace* trace = nullptr;     ///< gets one more run of each variant, which is not timed; else paused
  std::string label;          ///< in the trace, before the variant's name
};

/// A kernel in the run that was traced.
struct KernelTime {
  std::string kernel, op;
  double flops = 0, bytes = 0, milliseconds = 0;  ///< executed FLOPs
};

/// What was measured of one variant.
struct Measurement {
  std::vector<double> milliseconds;  ///< of each run, sorted
  double useful_flops = 0, executed_flops = 0;
  bool flops_known = true;  ///< false: what the mask keeps is in tables that the run itself computes
  std::int64_t planned_bytes = 0;
  std::optional<std::int64_t> peak_bytes;  ///< resident memory that binding, planning and the first run added
  std::string isa;
  int threads = 1;
  std::vector<KernelTime> kernels;               ///< where there is a trace
  std::int64_t tile_queries = 0, tile_keys = 0;  ///< of its attention kernel, if that has a mask
  double quantile(double p) const;               ///< of milliseconds, interpolated
};

struct Group {
  std::vector<Measurement> variants;
  double peak_gflops = 0;  ///< FMA on as many threads, median of the turns between the runs
};

/// q, k, v, contiguous: [batch, heads or kv_heads, length, head_dim]; `out` is as large as q and all variants write to
/// it.
struct Tensors {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  std::vector<float>* out = nullptr;
};

/// `progress(text)` is told what runs; `finished(i)` is called when variant i has run first and `out` holds its result.
Group measure(const std::vector<Variant>& variants, const AttentionShape& shape, const Tensors& tensors,
              const MeasureOptions& options, const std::function<void(const std::string&)>& progress,
              const std::function<void(std::size_t)>& finished);

/// Least-squares slope of log(y) over log(x): the exponent of growth. None with fewer than two points.
std::optional<double> fitted_exponent(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace treadle::cli

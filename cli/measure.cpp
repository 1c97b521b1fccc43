#include "measure.hpp"

#include "machine.hpp"
#include "peak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace treadle::cli {

namespace {
using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

double interpolated(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

struct Running {
  BoundModel model;
  std::vector<NamedTensor> inputs, outputs;
  std::vector<std::uint8_t> table;
  double last_ms = 0;
  std::size_t traced = 0;  ///< which model it is in the trace
};

TensorView view(const float* data, std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t head_dim) {
  const std::int64_t shape[] = {batch, heads, length, head_dim};
  return dense_view(const_cast<float*>(data), f32, shape);  // inputs are only read
}
}  // namespace

double Measurement::quantile(double p) const { return interpolated(milliseconds, p); }

Group measure(const std::vector<Variant>& variants, const AttentionShape& shape, const Tensors& tensors,
              const MeasureOptions& options, const std::function<void(const std::string&)>& progress,
              const std::function<void(std::size_t)>& finished) {
  Group group;
  group.variants.resize(variants.size());
  std::vector<Running> running;
  running.reserve(variants.size());
  std::vector<float>& out = *tensors.out;
  out.assign(out.size(), 0.0f);  // touched before the measure of memory: what the caller owns is not the model's

  for (std::size_t i = 0; i < variants.size(); ++i) {
    progress(fmt::format("{}: first run", variants[i].name));
    Measurement& m = group.variants[i];
    const Graph graph = attention_model(variants[i], shape);
    const bool counts = reset_peak_resident();
    const auto before = resident_bytes();
    running.push_back(
        {BoundModel(
             graph, Parameters::random(graph, 1, {{"seq", shape.length}}),
             {.backend = options.backend, .isa = options.isa, .threads = options.threads, .trace = options.trace}),
         {},
         {},
         {}});
    Running& r = running.back();
    if (options.trace != nullptr) {
      options.trace->pause();
      options.trace->label(options.label + variants[i].name);
      r.traced = options.trace->models();
    }
    r.model.bind_dims({{"batch", shape.batch}, {"seq", shape.length}});
    r.inputs = {{"q", view(tensors.q, shape.batch, shape.heads, shape.length, shape.head_dim)},
                {"k", view(tensors.k, shape.batch, shape.kv_heads, shape.length, shape.head_dim)},
                {"v", view(tensors.v, shape.batch, shape.kv_heads, shape.length, shape.head_dim)}};
    if (const auto& table = variants[i].table) {
      const std::int64_t n = table->blocks(shape.length), of_table[] = {n, n};
      r.table = table->make(n);
      r.inputs.push_back({table->name, dense_view(r.table.data(), boolean, of_table)});
    }
    r.outputs = {{"out", view(out.data(), shape.batch, shape.heads, shape.length, shape.head_dim)}};
    const auto start = Clock::now();
    r.model.run(r.inputs, r.outputs);
    r.last_ms = milliseconds_since(start);
    const auto peak = peak_resident_bytes();
    if (counts && before && peak) m.peak_bytes = std::max<std::int64_t>(0, *peak - *before);
    m.planned_bytes = static_cast<std::int64_t>(r.model.planned_bytes());
    for (const StepInfo& s : r.model.steps()) {
      m.useful_flops += s.useful_flops;
      m.executed_flops += s.executed_flops;
      m.flops_known = m.flops_known && !s.upper_bound;
      if (s.tile_queries > 0) m.tile_queries = s.tile_queries, m.tile_keys = s.tile_keys;
    }
    m.isa = std::string(r.model.isa());
    m.threads = r.model.threads();
    finished(i);
  }

  const kernel::Table* table = kernel::find_table(group.variants.empty() ? "" : group.variants.front().isa.c_str());
  const kernel::Table& yardstick = table != nullptr ? *table : kernel::best_table();
  std::vector<double> peaks;
  constexpr double turn_ms = 15;  // short variants run several times a turn, so that all get samples enough
  const auto begin = Clock::now();
  for (int round = 0;; ++round) {
    if (options.repetitions > 0 ? round >= options.repetitions
                                : round >= options.least_repetitions &&
                                      (milliseconds_since(begin) > options.budget_seconds * 1e3 || round >= 200))
      break;
    const int threads = group.variants.empty() ? 1 : group.variants.front().threads;
    peaks.push_back(fma_gflops(yardstick, threads, 3));
    for (std::size_t i = 0; i < variants.size(); ++i) {
      progress(fmt::format("{}: run {}", variants[i].name, group.variants[i].milliseconds.size() + 1));
      Running& r = running[i];
      const int runs =
          options.repetitions > 0 ? 1 : std::clamp(static_cast<int>(turn_ms / std::max(r.last_ms, 1e-3)), 1, 10);
      for (int n = 0; n < runs; ++n) {
        const auto start = Clock::now();
        r.model.run(r.inputs, r.outputs);
        r.last_ms = milliseconds_since(start);
        group.variants[i].milliseconds.push_back(r.last_ms);
      }
    }
  }
  if (options.trace != nullptr) {
    for (Running& r : running) {
      options.trace->resume();
      r.model.run(r.inputs, r.outputs);
      options.trace->pause();
    }
    for (const StepTime& t : options.trace->step_times()) {
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (running[i].traced != t.model) continue;
        const std::span<const StepInfo> steps = running[i].model.steps();
        if (t.step >= steps.size()) continue;  // a copy of an input or output
        const StepInfo& s = steps[t.step];
        group.variants[i].kernels.push_back(
            {s.kernel, std::string(name(s.op)), s.executed_flops, s.bytes, t.milliseconds});
      }
    }
  }
  for (Measurement& m : group.variants) std::sort(m.milliseconds.begin(), m.milliseconds.end());
  std::sort(peaks.begin(), peaks.end());
  group.peak_gflops = interpolated(peaks, 0.5);
  return group;
}

std::optional<double> fitted_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  if (x.size() < 2) return std::nullopt;
  double mean_x = 0, mean_y = 0, xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / n;
    mean_y += std::log(y[i]) / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    xx += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
  }
  if (xx <= 0) return std::nullopt;
  return xy / xx;
}

}  // namespace treadle::cli

#pragma once
// What ran when: one event for each step of a run, and one for each piece of a step that a thread worked on, in the
// format that Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
//   Trace trace;
//   BoundModel model(graph, parameters, {.backend = "tbb", .trace = &trace});   // a trace outlives its models
//   model.bind_dims({{"batch", 1}, {"seq", 128}});                              // room for events is made here
//   model.run(inputs, outputs);                                                 // allocates nothing, traced or not
//   write(trace.to_json());
//
// A model without a trace pays one branch on a pointer a step.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

struct TraceOptions {
  std::size_t events = std::size_t{1} << 16;  ///< kept of each thread; later ones are counted, not kept
  bool counters = true;                       ///< cycles, instructions and cache misses, where the system permits
};

/// What a step is called in a trace.
struct TraceStep {
  std::string name, op, kernel;
  double flops = 0, bytes = 0;
};

/// One run of a step.
struct StepTime {
  std::size_t model = 0, step = 0;  ///< in the order of the model's steps
  double milliseconds = 0;
};

/// Of the thread that asks, since its first asking.
struct HardwareCounts {
  bool known = false;
  std::uint64_t cycles = 0, instructions = 0, cache_misses = 0;
};

/// Models with the same trace may not run, or be bound, at the same time. Neither copied nor moved: models point to it.
class Trace {
 public:
  explicit Trace(TraceOptions options = {});
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace();

  /// What models that are bound from now on are called: a process of the picture.
  void label(std::string_view text);

  /// Chrome's trace events: complete events ("X") in microseconds since the trace began; a model's own row has its
  /// steps, and one row for each thread has the pieces, with the counters. `otherData` says how many events were left
  /// out, and why there are no counters if there are none.
  std::string to_json() const;

  /// Between the two, runs are as if there were no trace: for timing a model that is traced afterwards.
  void pause() { recording_ = false; }
  void resume() { recording_ = true; }
  bool recording() const { return recording_; }

  /// How long the steps took, as they ran. `model` counts the models in the order in which they were bound.
  std::vector<StepTime> step_times() const;
  std::size_t models() const { return models_.size(); }

  std::size_t events() const;   ///< kept
  std::size_t dropped() const;  ///< for which there was no room
  /// Why there are no hardware counters; empty: there are.
  const std::string& counters_refused() const { return refused_; }

  // ---- for the executor

  /// At bind: makes room; gives the number of the first step. `threads` is how many work at the same time.
  std::int32_t add_steps(std::vector<TraceStep> steps, int threads);
  /// Nanoseconds since the trace began.
  std::int64_t now() const;
  HardwareCounts counts() const;
  void add_step(std::int32_t step, std::int64_t begin);
  void add_piece(std::int32_t step, std::size_t thread, std::size_t first, std::size_t last, std::int64_t begin,
                 const HardwareCounts& before);

 private:
  struct Event {
    std::int64_t begin = 0, end = 0;
    std::int32_t step = 0;
    std::uint32_t first = 0, last = 0;
    HardwareCounts counts;
  };
  struct alignas(64) Lane {  ///< one writer at a time
    std::vector<Event> events;
    std::size_t used = 0, dropped = 0;
  };
  struct Model {
    std::string label;
    std::int32_t first_step = 0;
  };

  TraceOptions options_;
  std::int64_t began_ = 0;
  bool recording_ = true;
  std::string refused_, label_ = "model";
  std::vector<Model> models_;
  std::vector<TraceStep> steps_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< the steps, then one a thread

  void add(std::size_t lane, const Event& event);
  /// Of the step; counted from 1.
  std::size_t model_of(std::int32_t step) const;
};

}  // namespace treadle

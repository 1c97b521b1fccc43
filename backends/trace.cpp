#include <treadle/backends/hardware_counters.hpp>
#include <treadle/backends/trace.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace treadle {

namespace {
using Json = nlohmann::ordered_json;

std::int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Json name_of(const char* what, std::size_t process, std::size_t row, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}};
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }
}  // namespace

Trace::Trace(TraceOptions options) : options_(options), began_(nanoseconds()) {
  refused_ = options_.counters ? open_hardware_counters() : "not asked for";
}
Trace::~Trace() = default;

void Trace::label(std::string_view text) { label_ = text; }

std::int64_t Trace::now() const { return nanoseconds() - began_; }

HardwareCounts Trace::counts() const { return refused_.empty() ? read_hardware_counters() : HardwareCounts{}; }

std::int32_t Trace::add_steps(std::vector<TraceStep> steps, int threads) {
  const auto first = static_cast<std::int32_t>(steps_.size());
  models_.push_back({label_, first});
  std::move(steps.begin(), steps.end(), std::back_inserter(steps_));
  while (lanes_.size() < 1 + static_cast<std::size_t>(threads)) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->events.resize(options_.events);
  }
  return first;
}

void Trace::add(std::size_t lane, const Event& event) {
  Lane& l = *lanes_[lane];
  if (l.used == l.events.size()) {
    ++l.dropped;
    return;
  }
  l.events[l.used++] = event;
}

void Trace::add_step(std::int32_t step, std::int64_t begin) { add(0, {begin, now(), step, 0, 0, {}}); }

void Trace::add_piece(std::int32_t step, std::size_t thread, std::size_t first, std::size_t last, std::int64_t begin,
                      const HardwareCounts& before) {
  Event e{begin, now(), step, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), {}};
  if (const HardwareCounts after = counts(); before.known && after.known)
    e.counts = {true, after.cycles - before.cycles, after.instructions - before.instructions,
                after.cache_misses - before.cache_misses};
  add(1 + thread, e);
}

std::size_t Trace::events() const {
  std::size_t n = 0;
  for (const auto& l : lanes_) n += l->used;
  return n;
}

std::size_t Trace::dropped() const {
  std::size_t n = 0;
  for (const auto& l : lanes_) n += l->dropped;
  return n;
}

std::size_t Trace::model_of(std::int32_t step) const {
  const auto behind = std::upper_bound(models_.begin(), models_.end(), step,
                                       [](std::int32_t s, const Model& m) { return s < m.first_step; });
  return static_cast<std::size_t>(behind - models_.begin());
}

std::vector<StepTime> Trace::step_times() const {
  std::vector<StepTime> times;
  if (lanes_.empty()) return times;
  for (std::size_t i = 0; i < lanes_[0]->used; ++i) {
    const Event& e = lanes_[0]->events[i];
    const std::size_t model = model_of(e.step) - 1;
    times.push_back({model, static_cast<std::size_t>(e.step - models_[model].first_step),
                     static_cast<double>(e.end - e.begin) * 1e-6});
  }
  return times;
}

std::string Trace::to_json() const {
  Json list = Json::array();
  for (std::size_t m = 0; m < models_.size(); ++m) {
    list.push_back(name_of("process_name", m + 1, 0, models_[m].label));
    for (std::size_t l = 0; l < lanes_.size(); ++l)
      list.push_back(name_of("thread_name", m + 1, l, l == 0 ? "steps" : "thread " + std::to_string(l)));
  }
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    for (std::size_t i = 0; i < lanes_[l]->used; ++i) {
      const Event& e = lanes_[l]->events[i];
      const TraceStep& s = steps_[static_cast<std::size_t>(e.step)];
      Json args = {{"kernel", s.kernel}};
      if (l == 0) {
        args["flops"] = s.flops;
        args["bytes"] = s.bytes;
        if (s.flops > 0 && e.end > e.begin) args["gflops_per_second"] = s.flops / static_cast<double>(e.end - e.begin);
      } else {
        args["first_item"] = e.first;
        args["items"] = e.last - e.first;
      }
      if (e.counts.known) {
        args["cycles"] = e.counts.cycles;
        args["instructions"] = e.counts.instructions;
        args["cache_misses"] = e.counts.cache_misses;
      }
      list.push_back({{"name", s.name.empty() ? s.op : s.name},
                      {"cat", s.op},
                      {"ph", "X"},
                      {"ts", microseconds(e.begin)},
                      {"dur", microseconds(e.end - e.begin)},
                      {"pid", model_of(e.step)},
                      {"tid", l},
                      {"args", std::move(args)}});
    }
  }
  const Json all = {{"displayTimeUnit", "ms"},
                    {"otherData",
                     {{"events", events()},
                      {"events_left_out", dropped()},
                      {"hardware_counters", refused_.empty() ? "cycles, instructions, cache misses" : refused_}}},
                    {"traceEvents", std::move(list)}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace treadle

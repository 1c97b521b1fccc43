// What a trace keeps of runs, and what it leaves out.

#include "support.hpp"

#include <treadle/backends/trace.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

using namespace treadle;
using namespace treadle::test;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

Graph gpt() {
  for (const auto& e : models::all)
    if (e.name == "tiny_gpt") return optimise(e.build());
  return {};
}

struct Traced {
  std::string json;
  std::size_t steps = 0, kept = 0, dropped = 0;
  Tensors out;
};

Traced trace_of(const BindOptions& options, TraceOptions trace_options, int runs, bool traced = true) {
  const Graph g = gpt();
  const Lengths dims{{"batch", 2}, {"seq", 40}};
  Trace trace(trace_options);
  trace.label("a \"name\" </script>");
  BindOptions o = options;
  if (traced) o.trace = &trace;
  BoundModel model(g, Parameters::random(g, 3), o);
  model.bind_dims(dims);
  const Tensors inputs = inputs_of(g, dims, 1, false);
  Traced t{"", 0, 0, 0, outputs_of(g, dims, false)};
  const std::size_t at_bind = trace.events();
  for (int i = 0; i < runs; ++i) model.run(named(inputs), named(t.out));
  for (const StepInfo& s : model.steps()) t.steps += s.at_bind || s.work_items == 0 ? 0 : 1;
  t.json = trace.to_json();
  t.kept = trace.events() - at_bind;
  t.dropped = trace.dropped();
  return t;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trace)

BOOST_AUTO_TEST_CASE(each_step_and_its_pieces_are_events) {
  const Traced t = trace_of({.backend = "simd"}, {}, 3);
  BOOST_TEST(t.steps > 5u);
  BOOST_TEST(t.kept == 3 * 2 * t.steps);  // one thread works on each step in one piece
  BOOST_TEST(t.dropped == 0u);
  BOOST_TEST(count_of(t.json, "\"cat\":\"attention\"") == 3u * 2 * 3);  // runs, step and piece, layers
  BOOST_TEST(count_of(t.json, "\"ph\":\"X\"") >= t.kept);
  BOOST_TEST(count_of(t.json, R"(a \"name\" </script>)") == 1u);
  BOOST_TEST(count_of(t.json, "\"name\":\"h.1.attn") > 0u);
}

BOOST_AUTO_TEST_CASE(threads_have_rows_of_their_own) {
  const Traced t = trace_of({.backend = "tbb", .threads = 2}, {}, 2);
  BOOST_TEST(t.kept >= 2 * 2 * t.steps);  // or several pieces
  BOOST_TEST(count_of(t.json, "\"thread 2\"") == 1u);
  BOOST_TEST(count_of(t.json, "\"thread 3\"") == 0u);
}

BOOST_AUTO_TEST_CASE(what_has_no_room_is_counted) {
  const Traced t = trace_of({.backend = "simd"}, {.events = 7}, 2);
  BOOST_TEST(t.kept + t.dropped >= 2 * 2 * t.steps);
  BOOST_TEST(t.kept <= 14u);
  BOOST_TEST(count_of(t.json, "\"events_left_out\":" + std::to_string(t.dropped)) == 1u);
}

BOOST_AUTO_TEST_CASE(results_are_the_same_bits) {
  const Traced with = trace_of({.backend = "tbb", .threads = 2}, {}, 1),
               without = trace_of({.backend = "tbb", .threads = 2}, {}, 1, false);
  BOOST_TEST(without.kept == 0u);
  BOOST_TEST_REQUIRE(with.out.size() == without.out.size());
  for (auto a = with.out.begin(), b = without.out.begin(); a != with.out.end(); ++a, ++b)
    BOOST_TEST((a->second.memory == b->second.memory));
}

BOOST_AUTO_TEST_CASE(a_pause_keeps_nothing) {
  const Graph g = gpt();
  const Lengths dims{{"batch", 1}, {"seq", 5}};
  Trace trace;
  trace.pause();
  BoundModel model(g, Parameters::random(g, 3), {.backend = "simd", .trace = &trace});
  model.bind_dims(dims);
  const Tensors inputs = inputs_of(g, dims, 1), out = outputs_of(g, dims);
  model.run(named(inputs), named(out));
  BOOST_TEST(trace.events() == 0u);
  trace.resume();
  model.run(named(inputs), named(out));
  const auto times = trace.step_times();
  BOOST_TEST_REQUIRE(!times.empty());
  BOOST_TEST(2 * times.size() == trace.events());
  const auto steps = model.steps();
  for (const StepTime& t : times) {
    BOOST_TEST(t.model == 0u);
    BOOST_TEST_REQUIRE(t.step < steps.size());
    BOOST_TEST(!steps[t.step].at_bind);
    BOOST_TEST(t.milliseconds >= 0);
  }
}

BOOST_AUTO_TEST_CASE(without_counters_it_says_why) {
  const Traced t = trace_of({.backend = "simd"}, {.counters = false}, 1);
  BOOST_TEST(count_of(t.json, "\"hardware_counters\":\"not asked for\"") == 1u);
  BOOST_TEST(count_of(t.json, "\"cycles\"") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// Case 84: a process that may use one CPU gets one thread, and callers at the same time do not multiply the workers. A
// program of its own, since the scheduler looks at the CPUs once.

#include <executor/support.hpp>

#include <treadle/ops/rules.hpp>

#include <filesystem>
#include <thread>

#include <sched.h>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(threads)

BOOST_AUTO_TEST_CASE(case_84_threads_respect_affinity_and_nesting) {
  cpu_set_t before, one;
  BOOST_TEST_REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before) && CPU_COUNT(&one) == 0) CPU_SET(cpu, &one);
  BOOST_TEST_REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);

  Builder g;
  const Node x = g.input("x", f32, {1, 4, 256, 16});
  g.output("out", attention(x, x, x));
  const Graph graph = g.finish();
  const Parameters none;
  const auto tasks = [] {
    const std::filesystem::directory_iterator all("/proc/self/task");
    return std::distance(begin(all), end(all));
  };
  std::thread([] {}).join();  // a sanitizer's own thread begins with the first
  const auto own = tasks();
  std::vector<std::thread> callers;
  std::vector<std::ptrdiff_t> seen(4);
  for (std::size_t c = 0; c < 4; ++c)
    callers.emplace_back([&, c] {
      BoundModel model(graph, none, {.backend = "tbb"});
      if (model.threads() != 1) return;  // seen stays 0
      std::vector<float> in(4 * 256 * 16, 0.5f), out(in.size());
      TensorView from = model.input_spec("x"), to = model.output_spec("out");
      from.data = in.data();
      to.data = out.data();
      for (int i = 0; i < 20; ++i) model.run({{"x", from}}, {{"out", to}});
      seen[c] = tasks();
    });
  for (std::thread& t : callers) t.join();
  for (const std::ptrdiff_t n : seen) {
    BOOST_TEST(n > 0);
    BOOST_TEST(n <= own + 4);  // the callers, and no worker beside them
  }
  BOOST_TEST(sched_setaffinity(0, sizeof before, &before) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

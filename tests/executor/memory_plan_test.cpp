// The memory plan: buffers that live at the same time never overlap, and what does not is shared.

#include <treadle/backends/memory_plan.hpp>

#include <boost/test/unit_test.hpp>

#include <random>

using namespace treadle;

BOOST_AUTO_TEST_SUITE(memory_plan)

// A chain x → y → z of equal buffers needs two of them, also in the compiler.
constexpr std::size_t chain_bytes() {
  const Lifetime chain[] = {{0, 1, 1000}, {1, 2, 1000}, {2, 3, 1000}, {3, 4, 1000}};
  return plan_memory(chain).bytes;
}
static_assert(chain_bytes() == 2 * 1024);

BOOST_AUTO_TEST_CASE(random_intervals_do_not_overlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> buffers(random() % 60);
    for (Lifetime& b : buffers) {
      b.first = random() % 40;
      b.last = b.first + random() % 12;
      b.bytes = random() % 5000;
    }
    const MemoryPlan plan = plan_memory(buffers);
    BOOST_REQUIRE(plan.offsets.size() == buffers.size());
    std::size_t sum = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      BOOST_TEST(plan.offsets[i] % memory_alignment == 0u);
      BOOST_TEST(plan.offsets[i] + buffers[i].bytes <= plan.bytes);
      sum += align_up(buffers[i].bytes);
      for (std::size_t j = 0; j < i; ++j) {
        if (!overlap(buffers[i], buffers[j])) continue;
        const bool apart = plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                           plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
        BOOST_TEST(apart);
      }
    }
    BOOST_TEST(plan.bytes >= memory_lower_bound(buffers));
    BOOST_TEST(plan.bytes <= sum);
  }
}

BOOST_AUTO_TEST_CASE(large_buffers_share) {
  // Two large ones that never meet, and a small one over both.
  const Lifetime buffers[] = {{0, 1, 1 << 20}, {2, 3, 1 << 20}, {0, 3, 64}};
  BOOST_TEST(plan_memory(buffers).bytes == (1u << 20) + 64u);
}

BOOST_AUTO_TEST_SUITE_END()

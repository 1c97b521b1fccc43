// Costs as dim expressions.

#include <treadle/models/examples.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace treadle;

namespace {

constexpr Graph projection() {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 64});
  b.output("y", linear("q", x, {.width = 32, .bias = false}));
  return b.finish();
}
constexpr bool projection_costs_two_flops_a_weight() {
  Graph g = projection();
  const Dim flops = cost_of(g).flops;
  const Dim expected = (batch * seq * (2 * 64 * 32)).intern(g.dims, g.strings);
  return flops == expected;
}
static_assert(projection_costs_two_flops_a_weight());

}  // namespace

BOOST_AUTO_TEST_SUITE(cost)

BOOST_AUTO_TEST_CASE(attention_counts_pairs) {
  Builder b;
  const Node q = b.input("q", f32, {batch, 4, seq, 16}), k = b.input("k", f32, {batch, 4, dim("keys"), 16});
  b.output("y", attention(q, k, k));
  Graph g = b.finish();
  for (std::int32_t n = 0; n < g.view().size(); ++n)
    if (g.nodes[n].op == op::attention)
      BOOST_TEST(cost_of(g, n).flops == (batch * 4 * seq * dim("keys") * (2 * 32)).intern(g.dims, g.strings));
}

BOOST_AUTO_TEST_CASE(masked_attention_costs_its_non_zeros) {
  Builder b;
  const Node q = b.input("q", f32, {batch, 4, seq, 16});
  b.output("y", attention(q, q, q, {.mask = causal}));
  Graph g = b.finish();
  for (std::int32_t n = 0; n < g.view().size(); ++n) {
    if (g.nodes[n].op != op::attention) continue;
    const Dim flops = cost_of(g, n).flops;
    const std::string text(dim_text(g, flops).view());
    BOOST_TEST(text.find("nonzeros:") != std::string::npos, text);
    BOOST_TEST(text.find("seq") == std::string::npos, text);
  }
}

BOOST_AUTO_TEST_CASE(a_repeat_counts_its_iterations) {
  const auto flops = [](std::int64_t times) {
    Builder b;
    const Node x = b.input("x", f32, {batch, seq, 16});
    b.output("y", repeat("h", times, x, [](Node y) { return linear("up", y, {.width = 16, .bias = false}); }));
    Graph g = b.finish();
    const Dim d = cost_of(g).flops;
    return std::string(dim_text(g, d).view());
  };
  BOOST_TEST(flops(1) == "512*batch*seq");
  BOOST_TEST(flops(12) == "6144*batch*seq");
}

BOOST_AUTO_TEST_SUITE_END()

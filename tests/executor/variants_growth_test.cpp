// Plans of sparse and linear variants from 1k to 1M tokens: work and memory grow with the length, not with its square.
// Nothing runs.

#include "support.hpp"

#include <treadle/graph/mask/patterns.hpp>
#include <treadle/ops/rules.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(variants_growth)

namespace {

struct Planned {
  double flops = 0, bytes = 0;
};

Planned plan(const AttentionVariant& variant, std::int64_t length) {
  Builder g;
  const Node x = g.input("x", f32, {1, seq, 16});
  g.output("y", self_attention("attn", x, {.heads = 2, .variant = variant}));
  const Graph graph = optimise(g.finish());
  BOOST_REQUIRE(!graph.error);
  const Parameters parameters = Parameters::random(graph, 1);
  BoundModel model(graph, parameters, {.backend = "simd"});
  model.bind_dims({{"seq", length}});
  Planned p;
  for (const StepInfo& s : model.steps()) p.flops += s.executed_flops;
  p.bytes = static_cast<double>(model.planned_bytes());
  return p;
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_and_memory_are_linear_in_the_length, *boost::unit_test::label("long")) {
  constexpr std::int64_t k = 1024;
  for (const AttentionVariant& variant :
       {AttentionVariant(causal & window(255, 0)), AttentionVariant(dilated(window(256, 256), 4)), longformer(256, {0}),
        AttentionVariant(local_chunks(64, 1)), AttentionVariant(big_bird()),
        AttentionVariant(prefix(64) & window(32, -1)), variants::linear(), variants::linear({.causal = true}),
        performer({.features = 16}), performer({.features = 16, .causal = true}), variants::retention(),
        variants::gated_linear(), variants::delta_rule(), variants::nystrom(16),
        variants::linformer({.length = 16, .max_length = k * k})}) {
    BOOST_TEST_CONTEXT(variant.name) {
      const Planned small = plan(variant, k), middle = plan(variant, 32 * k), large = plan(variant, k * k);
      BOOST_TEST(middle.flops < 40 * small.flops);  // at 1k the borders of a window still show
      BOOST_TEST(large.flops < 33 * middle.flops);
      BOOST_TEST(middle.bytes < 33 * small.bytes);
      BOOST_TEST(large.bytes < 33 * middle.bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(dense_attention_is_not_linear) {
  const Planned small = plan({}, 1024), large = plan({}, 32 * 1024);
  BOOST_TEST(large.flops > 500 * small.flops);
  BOOST_TEST(large.bytes < 33 * small.bytes);  // no matrix of scores is held
}

BOOST_AUTO_TEST_SUITE_END()

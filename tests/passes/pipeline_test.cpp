#include <treadle/graph/random.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

// The compiler runs the pipeline, and checks the graph after each pass.
static_assert([] {
  verifying_observer observer;
  const Graph g = optimise(models::written_out(), observer);
  return !observer.violation && g.count(op::attention) == 1 && g.count(op::softmax) == 0 && g.count(op::linear) == 2;
}());
static_assert([] {
  const Graph g = optimise(models::tiny_gpt());
  return g.count(op::linear) == 5 && g.count(op::activation) == 0 && g.count(op::embedding_sum) == 1 &&
         g.count(op::add) == 0 && g.count(op::repeat) == 1;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(pipeline)

BOOST_AUTO_TEST_CASE(example_models_stay_well_formed_after_each_pass) {
  for (const models::Entry& e : models::all) {
    int passes = 0;
    const Graph g = optimise(e.build(), [&](const PassReport& report, GraphView, GraphView after) {
      ++passes;
      for (const std::string& v : violations(after)) BOOST_ERROR(e.name << " after " << report.pass << ": " << v);
    });
    BOOST_TEST(passes == 14);
    BOOST_TEST(g.count(op::output) == e.build().count(op::output));
  }
}

BOOST_AUTO_TEST_CASE(the_observer_sees_what_each_pass_did) {
  std::string log;
  optimise(models::written_out(), [&](const PassReport& report, GraphView before, GraphView after) {
    if (report.rewrites == 0) BOOST_TEST(to_text(before) == to_text(after));
    if (report.rewrites > 0) log += std::string(report.pass) + " " + std::to_string(report.rewrites) + "\n";
  });
  BOOST_TEST(log == "fuse_attention 1\nmerge_qkv 1\n");
}

BOOST_AUTO_TEST_CASE(a_graph_with_an_error_is_left_alone) {
  Builder b;
  const Node x = b.input("x", f32, {batch, 4});
  b.output("y", linear("p", x, {.width = 0}));
  Graph g = b.finish();
  BOOST_REQUIRE(g.error.kind != error_kind::none);
  const std::size_t nodes = g.nodes.size();
  int passes = 0;
  g = optimise(std::move(g), [&](const PassReport&, GraphView, GraphView) { ++passes; });
  BOOST_TEST(passes == 0);
  BOOST_TEST(g.nodes.size() == nodes);
}

BOOST_AUTO_TEST_CASE(random_graphs_stay_well_formed_after_each_pass) {
  int fused = 0, merged = 0, epilogues = 0, common = 0, dead = 0, scales = 0, slices = 0, gates = 0, embeddings = 0,
      add_norms = 0, linear = 0, constants = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Graph g = random_graph(seed);
    g = optimise(std::move(g), [&](const PassReport& report, GraphView, GraphView after) {
      for (const std::string& v : violations(after))
        BOOST_ERROR("seed " << seed << " after " << report.pass << ": " << v);
      fused += report.pass == "fuse_attention" ? report.rewrites : 0;
      merged += report.pass == "merge_qkv" ? report.rewrites : 0;
      epilogues += report.pass == "fuse_epilogue" ? report.rewrites : 0;
      common += report.pass == "merge_common_subexpressions" ? report.rewrites : 0;
      dead += report.pass == "remove_dead_nodes" ? report.rewrites : 0;
      scales += report.pass == "fold_scales" ? report.rewrites : 0;
      gates += report.pass == "fuse_gated_linear" ? report.rewrites : 0;
      embeddings += report.pass == "fuse_embedding" ? report.rewrites : 0;
      add_norms += report.pass == "fuse_add_norm" ? report.rewrites : 0;
      linear += report.pass == "fuse_linear_attention" ? report.rewrites : 0;
      constants += report.pass == "fold_constants" ? report.rewrites : 0;
      slices += report.pass == "move_slices_up" ? report.rewrites : 0;
    });
    const std::string text = to_text(g);
    BOOST_REQUIRE(to_text(parse_graph(text)) == text);
  }
  BOOST_TEST(fused > 100);
  BOOST_TEST(merged > 100);
  BOOST_TEST(epilogues > 100);
  BOOST_TEST(common > 100);
  BOOST_TEST(dead > 100);
  BOOST_TEST(scales > 100);
  BOOST_TEST(slices > 100);
  BOOST_TEST(linear > 20);
  BOOST_TEST(constants > 100);
  BOOST_TEST(gates > 50);
  BOOST_TEST(embeddings > 100);
  BOOST_TEST(add_norms > 100);
}

BOOST_AUTO_TEST_CASE(each_pass_finds_nothing_the_second_time) {
  for (Pass pass :
       {Pass(remove_dead_nodes), Pass(merge_common_subexpressions), Pass(fuse_attention), Pass(fuse_epilogue),
        Pass(merge_qkv), Pass(fold_scales), Pass(move_slices_up), Pass(fuse_gated_linear), Pass(fuse_embedding),
        Pass(fuse_add_norm), Pass(fuse_linear_attention), Pass(fold_constants)}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      PassReport report;
      Graph g = pass(remove_dead_nodes(random_graph(seed)), &report);
      g = pass(std::move(g), &report);
      BOOST_TEST(report.rewrites == 0, report.pass << " on seed " << seed << " rewrote again: " << report.rewrites);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// A run allocates nothing: every operator new of this executable is counted.

#include "support.hpp"

#include <allocations.hpp>

#include <treadle/backends/trace.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/ops/routing_attention.hpp>
#include <treadle/ops/top_k_attention.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

const Lengths all_dims{{"batch", 2},    {"seq", 40}, {"source_len", 9}, {"target_len", 5},
                       {"patches", 16}, {"past", 3}, {"fresh", 5}};

/// Allocations of five runs after a warm-up; every run has other inputs: ids, document ids, key lengths.
long allocations_of_runs(const Graph& g, const BindOptions& options, bool strided) {
  Lengths dims;
  const auto names = dim_names(g);
  for (const NamedSize& s : all_dims)
    if (std::find(names.begin(), names.end(), s.name) != names.end()) dims.push_back(s);
  BoundModel model(g, Parameters::random(g, 3), options);
  model.bind_dims(dims);
  std::vector<Tensors> inputs;
  std::vector<std::vector<NamedTensor>> in;
  for (std::uint64_t i = 0; i < 10; ++i) inputs.push_back(inputs_of(g, dims, i, strided));
  for (const Tensors& t : inputs) in.push_back(named(t));
  const Tensors outputs = outputs_of(g, dims, strided);
  const auto out = named(outputs);
  for (std::size_t i = 0; i < 5; ++i) model.run(in[i], out);
  const long before = allocations.load();
  for (std::size_t i = 5; i < 10; ++i) model.run(in[i], out);
  return allocations.load() - before;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
  const long before = allocations.load();
  ::operator delete(::operator new(1));  // a new expression may be left out by the compiler
  BOOST_TEST(allocations.load() == before + 1);
}

/// Lengths that stay are not planned again.
BOOST_AUTO_TEST_CASE(the_same_lengths_are_planned_once) {
  const Graph g = optimise(models::all[0].build());
  BoundModel model(g, Parameters::random(g, 3), {.backend = "simd"});
  Lengths dims;
  for (const std::string& name : dim_names(g))
    for (const NamedSize& s : all_dims)
      if (s.name == name) dims.push_back(s);
  model.bind_dims(dims);
  const long before = allocations.load();
  model.bind_dims(dims);
  BOOST_TEST(allocations.load() - before < 10);  // the names that are compared
}

BOOST_AUTO_TEST_CASE(a_run_on_simd_allocates_nothing) {
  for (const auto& entry : models::all)
    for (const bool strided : {false, true}) BOOST_TEST_CONTEXT(entry.name << (strided ? " strided" : " dense")) {
        const Graph declared = entry.build();
        BOOST_TEST(allocations_of_runs(declared, {.backend = "simd"}, strided) == 0);
        BOOST_TEST(allocations_of_runs(optimise(declared), {.backend = "simd"}, strided) == 0);
      }
}

BOOST_AUTO_TEST_CASE(a_run_on_tbb_allocates_nothing) {
  for (const auto& entry : models::all) BOOST_TEST_CONTEXT(entry.name)
  BOOST_TEST(allocations_of_runs(optimise(entry.build()), {.backend = "tbb", .threads = 2}, false) == 0);
}

BOOST_AUTO_TEST_CASE(a_traced_run_allocates_nothing) {
  Trace trace({.events = 1000});
  for (const auto& entry : models::all)
    if (entry.name == "tiny_gpt") {
      BOOST_TEST(allocations_of_runs(optimise(entry.build()), {.backend = "simd", .trace = &trace}, true) == 0);
    }
  BOOST_TEST(trace.events() > 10u);
}

// Tables that are computed in a run are bound in the middle of it.
BOOST_AUTO_TEST_CASE(a_run_with_computed_tables_allocates_nothing) {
  Builder b;
  const Node q = b.input("q", f32, {batch, 2, seq, 8}), k = b.input("k", f32, {batch, 2, seq, 8}),
             centroids = b.parameter("centroids", {b.dim_number(2), b.dim_number(4), b.dim_number(8)});
  b.output("y", clustered_attention(q, k, k, centroids, {.iterations = 1}));
  b.output("z", routing_attention(q, k, k, centroids, {.causal = true}));
  b.output("top", top_k_attention(q, k, k, {.k = 3}));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  for (const bool strided : {false, true})
    BOOST_TEST(allocations_of_runs(optimise(g), {.backend = "simd"}, strided) == 0);
  BOOST_TEST(allocations_of_runs(g, {.backend = "tbb", .threads = 2}, false) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

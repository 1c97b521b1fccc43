// The example models on every ISA and backend against float64, as declared and optimised, at awkward sizes.

#include "support.hpp"

#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

const std::vector<Lengths> sizes{
    {{"batch", 1}, {"seq", 1}, {"source_len", 1}, {"target_len", 1}, {"patches", 0}, {"past", 0}, {"fresh", 1}},
    {{"batch", 2}, {"seq", 17}, {"source_len", 9}, {"target_len", 5}, {"patches", 4}, {"past", 3}, {"fresh", 5}},
    {{"batch", 3}, {"seq", 70}, {"source_len", 33}, {"target_len", 65}, {"patches", 64}, {"past", 0}, {"fresh", 64}}};

Lengths only_known(GraphView g, const Lengths& all) {
  Lengths dims;
  const auto names = dim_names(g);
  for (const NamedSize& s : all)
    if (std::find(names.begin(), names.end(), s.name) != names.end()) dims.push_back(s);
  return dims;
}

/// Per model, size and whether optimised.
template <class F>
void for_each_case(F f) {
  for (const auto& entry : models::all) {
    const Graph declared = entry.build();
    const Graph better = optimise(declared);
    const Parameters parameters = Parameters::random(declared, 11);
    for (const Lengths& all : sizes) {
      const Lengths dims = only_known(declared, all);
      BOOST_TEST_CONTEXT(entry.name << " seq " << all[1].value) f(declared, better, parameters, dims);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(models_on_backends)

BOOST_AUTO_TEST_CASE(every_isa_matches_float64) {
  for_each_case([](const Graph& declared, const Graph& better, const Parameters& parameters, const Lengths& dims) {
    const Results want = oracle(declared, parameters, dims, 3);
    for (const std::string& isa : isas()) {
      BOOST_TEST_CONTEXT(isa) {
        BOOST_TEST(difference(run(declared, parameters, dims, {.backend = "simd", .isa = isa}, 3), want) < 2e-5);
        BOOST_TEST(difference(run(better, parameters, dims, {.backend = "simd", .isa = isa}, 3), want) < 2e-5);
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(float32_reference_matches_float64) {
  for_each_case([](const Graph& declared, const Graph&, const Parameters& parameters, const Lengths& dims) {
    BOOST_TEST(difference(run(declared, parameters, dims, {.backend = "reference"}, 3),
                          oracle(declared, parameters, dims, 3)) < 2e-5);
  });
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_a_bit) {
  for_each_case([](const Graph&, const Graph& better, const Parameters& parameters, const Lengths& dims) {
    const Results one = run(better, parameters, dims, {.backend = "simd"}, 5);
    for (int threads = 1; threads <= 3; ++threads)
      BOOST_TEST(difference(run(better, parameters, dims, {.backend = "tbb", .threads = threads}, 5), one) == 0.0);
  });
}

BOOST_AUTO_TEST_CASE(strides_of_the_caller_do_not_change_a_bit) {
  for_each_case([](const Graph&, const Graph& better, const Parameters& parameters, const Lengths& dims) {
    const Results dense = run(better, parameters, dims, {.backend = "simd"}, 5);
    BOOST_TEST(difference(run(better, parameters, dims, {.backend = "simd"}, 5, true, false), dense) == 0.0);
    BOOST_TEST(difference(run(better, parameters, dims, {.backend = "simd"}, 5, false, true), dense) == 0.0);
    BOOST_TEST(difference(run(better, parameters, dims, {.backend = "tbb"}, 5, true, true), dense) == 0.0);
  });
}

BOOST_AUTO_TEST_CASE(lengths_can_change) {
  for (const auto& entry : models::all) {
    const Graph g = optimise(entry.build());
    const Parameters parameters = Parameters::random(g, 11);
    BoundModel model(g, parameters, {.backend = "simd"});
    for (const std::size_t which : {1u, 2u, 0u, 1u}) {
      const Lengths dims = only_known(g, sizes[which]);
      model.bind_dims(dims);
      model.reset_states();
      const Tensors in = inputs_of(g, dims, 9);
      Tensors out = outputs_of(g, dims);
      model.run(named(in), named(out));
      BOOST_TEST_CONTEXT(entry.name << " " << which)
      BOOST_TEST(difference(values(out), run(g, parameters, dims, {.backend = "simd"}, 9)) == 0.0);
    }
  }
}

BOOST_AUTO_TEST_CASE(scores_never_exist_after_fusion) {
  const Graph declared = models::written_out(), better = optimise(declared);
  const Parameters parameters = Parameters::random(declared, 1);
  const auto arena = [&](const Graph& g, std::int64_t n) {
    BoundModel model(g, parameters, {.backend = "simd"});
    model.bind_dims({{"batch", 1}, {"seq", n}});
    return static_cast<double>(model.planned_bytes() - model.workspace_bytes());
  };
  BOOST_TEST(arena(better, 2048) / arena(better, 1024) < 2.1);
  BOOST_TEST(arena(declared, 2048) / arena(declared, 1024) > 3.0);
}

BOOST_AUTO_TEST_SUITE_END()

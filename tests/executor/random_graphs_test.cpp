// Random graphs: vector kernels against float64, as declared and optimised, states included. TREADLE_RANDOM_ROUNDS sets
// how many.

#include "support.hpp"

#include <treadle/graph/random.hpp>
#include <treadle/passes/pipeline.hpp>

#include <cstdlib>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(random_graphs)

BOOST_AUTO_TEST_CASE(simd_matches_float64) {
  const char* text = std::getenv("TREADLE_RANDOM_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : 60;
  for (int seed = 0; seed < rounds; ++seed) {
    const Graph declared = random_graph(static_cast<std::uint64_t>(seed)), better = optimise(declared);
    Lengths dims;
    const auto names = dim_names(declared);
    for (const NamedSize& s : Lengths{{"batch", 2}, {"seq", 1 + seed % 9}, {"memory", 3}, {"past", 2}})
      if (std::find(names.begin(), names.end(), s.name) != names.end()) dims.push_back(s);
    const Parameters parameters = Parameters::random(declared, 3);
    BOOST_TEST_CONTEXT("seed " << seed) {
      const auto seed64 = static_cast<std::uint64_t>(seed);
      const Results want = oracle(declared, parameters, dims, seed64);
      BOOST_TEST(difference(run(declared, parameters, dims, {.backend = "simd"}, seed64), want) < 1e-4);
      const Results optimised = run(better, parameters, dims, {.backend = "simd"}, seed64, true, true);
      BOOST_TEST(difference(optimised, want) < 1e-4);
      BOOST_TEST(difference(run(better, parameters, dims, {.backend = "tbb", .threads = 2}, seed64), optimised) == 0.0);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

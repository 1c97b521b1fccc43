#pragma once
// One op on every ISA against float64: dense and strided, on one thread, two and three.

#include "support.hpp"

#include <treadle/ops/rules.hpp>

#include <functional>
#include <string>

namespace treadle::test {

/// Widths and lengths around 1, 4, 8 and 16 lanes.
inline constexpr std::int64_t lengths[] = {0, 1, 3, 8, 15, 16, 17, 33};

inline void check(const Graph& g, const Lengths& dims, double tolerance = 1e-5) {
  BOOST_REQUIRE_MESSAGE(!g.error, "the graph has a mistake");
  const Parameters parameters = Parameters::random(g, 5, values_of(dims));
  const Results want = oracle(g, parameters, dims, 21);
  for (const std::string& isa : isas()) {
    BOOST_TEST_CONTEXT(isa) {
      const Results dense = run(g, parameters, dims, {.backend = "simd", .isa = isa}, 21);
      BOOST_TEST(difference(dense, want) < tolerance);
      BOOST_TEST(difference(run(g, parameters, dims, {.backend = "simd", .isa = isa}, 21, true, true), dense) == 0.0);
      for (const int threads : {2, 3})
        BOOST_TEST(
            difference(run(g, parameters, dims, {.backend = "tbb", .isa = isa, .threads = threads}, 21), dense) == 0.0);
    }
  }
}

/// One f32 input "x" of the given shape, one output.
inline void check_unary(std::initializer_list<DimSpec> shape, const std::function<Node(Node)>& f,
                        double tolerance = 1e-5) {
  for (const std::int64_t n : lengths) {
    Builder b;
    b.output("y", f(b.input("x", f32, shape)));
    BOOST_TEST_CONTEXT("n = " << n) check(b.finish(), {{"n", n}}, tolerance);
  }
}

/// What the graph that `f` ends in has got wrong, and what would be right; empty if nothing.
inline std::string mistake(const std::function<Node(Builder&)>& f) {
  Builder b;
  b.output("y", f(b));
  const Graph g = b.finish();
  return g.error ? std::string(g.strings[g.error.got]) + " | " + std::string(g.strings[g.error.expected]) : "";
}

inline const DimSpec n = dim("n");

}  // namespace treadle::test

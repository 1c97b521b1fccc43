// Random graphs: vector kernels against float64, as declared and optimised, states included. TREADLE_RANDOM_ROUNDS sets
// how many.

#include "support.hpp"

#include <rounds.hpp>

#include <treadle/graph/random.hpp>
#include <treadle/passes/pipeline.hpp>

#include <cmath>

using namespace treadle;
using namespace treadle::test;

namespace {

/// One unit in the last place up, down, or neither.
void nudge(float& x, Numbers& numbers) {
  const std::uint64_t way = numbers.next() % 3;
  if (way != 0) x = std::nextafter(x, way == 1 ? INFINITY : -INFINITY);
}

/// How far the float64 result moves when parameters and inputs do by one unit in the last place of a float: what no
/// float32 kernel can be asked to resolve. The largest of a few draws.
double sensitivity(const Graph& g, const Parameters& parameters, const Lengths& dims, std::uint64_t seed,
                   const Results& want) {
  double worst = 0;
  for (std::uint64_t draw = 0; draw < 4; ++draw) {
    Numbers numbers{draw};
    Parameters moved;
    for (const std::string& name : parameters.names()) {
      const TensorView t = parameters.find(name);
      std::vector<float> data(t.as<float>(), t.as<float>() + t.size());
      for (float& x : data) nudge(x, numbers);
      moved.own(name, {t.shape.begin(), t.shape.begin() + t.rank}, std::move(data));
    }
    Tensors in = inputs_of(g, dims, seed), out = outputs_of(g, dims, false, f64);
    for (auto& [name, t] : in)
      if (t.view.dtype == f32)
        t.each([&](std::int64_t, std::byte* x) { nudge(*reinterpret_cast<float*>(x), numbers); });
    BoundModel model(g, moved, {.backend = "reference", .float64 = true});
    model.bind_dims(dims);
    model.run(named(in), named(out));
    worst = std::max(worst, difference(values(out), want));
  }
  return worst;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(random_graphs)

BOOST_AUTO_TEST_CASE(simd_matches_float64) {
  const int rounds = random_rounds(60);
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
      const double plain = difference(run(declared, parameters, dims, {.backend = "simd"}, seed64), want);
      const Results optimised = run(better, parameters, dims, {.backend = "simd"}, seed64, true, true);
      // A chain of norms over short rows multiplies rounding; only there may a result be off by more than 1e-4.
      const double error = std::max(plain, difference(optimised, want));
      if (!(error < 1e-4)) BOOST_TEST(error < 1e-4 + 10 * sensitivity(declared, parameters, dims, seed64, want));
      BOOST_TEST(difference(run(better, parameters, dims, {.backend = "tbb", .threads = 2}, seed64), optimised) == 0.0);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

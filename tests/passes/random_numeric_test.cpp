// The property of every pass: the same results before and after, in float64, on random graphs. TREADLE_RANDOM_ROUNDS
// sets how many (default 100).

#include <treadle/backends/reference/reference.hpp>
#include <treadle/graph/random.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include "support.hpp"

#include <rounds.hpp>

#include <cmath>

using namespace treadle;
using Tensors = reference::Tensors<double>;

namespace {

const DimValues dims{{"batch", 2}, {"seq", 5},        {"memory", 3},     {"past", 2},
                     {"fresh", 5}, {"source_len", 4}, {"target_len", 3}, {"patches", 4}};

/// splitmix64, in [−1, 1).
struct Numbers {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double number() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }
};

/// Inputs and states of any graph: numbers; ids and lengths from 0 to 4; booleans that mostly keep.
Tensors values_of(GraphView g, op which, std::uint64_t seed) {
  Tensors tensors;
  Numbers numbers{seed};
  const BoundDims bound(g, dims);
  for (std::int32_t n = 0; n < g.size(); ++n) {
    if (g.nodes[n].op != which) continue;
    reference::Array<double> a = reference::zeros<double>(bound(g.shape({n, 0})));
    const DType type = g.info({n, 0}).dtype;
    for (double& x : a.data)
      x = type == f32 ? numbers.number()
                      : static_cast<double>(type == boolean ? numbers.next() % 4 != 0 : numbers.next() % 5);
    const std::string scope(g.scope(n));
    tensors.emplace(scope.empty() ? std::string(g.leaf(n)) : scope + "." + std::string(g.leaf(n)), std::move(a));
  }
  return tensors;
}

struct Result {
  Tensors outputs, states;
};

Result evaluate(GraphView g, const Tensors& inputs, const Parameters& parameters, const Tensors& states) {
  Result r;
  r.states = states;
  r.outputs = reference::evaluate<double>(g, dims, inputs, parameters, &r.states);
  return r;
}

/// The largest difference, relative to the size of the values (at least 1); infinite where they are not comparable.
double difference(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (const auto& [name, x] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.shape != x.shape) return INFINITY;
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const double p = x.data[i], q = found->second.data[i];
      if (p == q) continue;
      const double d = std::abs(p - q) / std::max(1.0, std::abs(p));
      worst = std::max(worst, std::isnan(d) ? INFINITY : d);
    }
  }
  return worst;
}

void check_passes(Graph g, std::uint64_t seed, const std::string& what) {
  const Tensors inputs = values_of(g, op::input, seed), states = values_of(g, op::state, seed + 1);
  const Parameters parameters = Parameters::random(g, seed, dims);
  const Result expected = evaluate(g, inputs, parameters, states);
  for (const auto& [name, x] : expected.outputs)
    for (double v : x.data)
      BOOST_REQUIRE_MESSAGE(std::isfinite(v), what << ": " << name << " is not finite, and compares with nothing");
  optimise(std::move(g), [&](const PassReport& report, GraphView before, GraphView after) {
    if (report.rewrites == 0) return;
    const Result got = evaluate(after, inputs, parameters, states);
    const double outputs = difference(expected.outputs, got.outputs), kept = difference(expected.states, got.states);
    if (outputs <= 1e-9 && kept <= 1e-9) return;
    BOOST_REQUIRE_MESSAGE(false, what << " differs after " << report.pass << " by " << outputs << " (states " << kept
                                      << ")\nbefore\n"
                                      << to_text(before) << "after\n"
                                      << to_text(after));
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(same_results)

BOOST_AUTO_TEST_CASE(random_graphs) {
  const int rounds = test::random_rounds(100);
  for (int i = 0; i < rounds; ++i) {
    const auto seed = static_cast<std::uint64_t>(i);
    check_passes(random_graph(seed), seed, "seed " + std::to_string(seed));
  }
}

BOOST_AUTO_TEST_CASE(example_models) {
  std::uint64_t seed = 1;
  for (const models::Entry& e : models::all) check_passes(e.build(), ++seed, std::string(e.name));
}

BOOST_AUTO_TEST_CASE(a_wrong_pass_would_be_noticed) {
  // The comparison itself: one factor changed in one node.
  Graph g = models::written_out();
  const Tensors inputs = values_of(g, op::input, 1), none;
  const Parameters parameters = Parameters::random(g, 1, dims);
  const Tensors before = evaluate(g, inputs, parameters, none).outputs;
  for (Attribute& a : g.attributes)
    if (a.key == key::factor) a.number *= 1.0001;
  const Tensors after = evaluate(g, inputs, parameters, none).outputs;
  BOOST_TEST(difference(before, after) > 1e-9);
  BOOST_TEST(difference(before, before) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

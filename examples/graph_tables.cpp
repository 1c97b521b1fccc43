// What a graph is: tables of plain data, the same for the compiler and for a running program.

#include <treadle/graph/text.hpp>
#include <treadle/treadle.hpp>

#include <cstdio>

using namespace treadle;

inline constexpr auto encoder = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, dim("patches") + 1, 16});
  const Node y = repeat("layer", 2, x, [](Node z) { return z + linear("proj", rms_norm("ln", z), {.width = 16}); });
  g.output("y", y);
  return g.finish();
};
struct Encoder : Model<encoder> {};

// Facts about a model are constants.
static_assert(Encoder::source.count(op::linear) == 1);  // a repeat's body counts once
static_assert(Encoder::source.count(op::add) == 1 && Encoder::optimised.count(op::add) == 0);  // now in the projection

int main() {
  const GraphView g = Encoder::source.view();
  std::printf("as declared:\n%s", to_text(g).c_str());
  std::printf("after the passes:\n%s", to_text(Encoder::optimised.view()).c_str());

  for (const ParameterInfo& p : parameter_names(g)) {
    std::printf("%s [", p.name.c_str());
    for (std::size_t i = 0; i < p.shape.size(); ++i) std::printf(i ? ", %d" : "%d", static_cast<int>(p.shape[i]));
    std::printf("] belongs to node %d in region %d\n", p.node, g.nodes[static_cast<std::size_t>(p.node)].region);
  }

  // The same function makes a graph at run time, where anything may be computed from it.
  Graph made = encoder();
  const Cost cost = cost_of(made);
  std::printf("useful FLOPs of a run: %s\n", to_text(made, cost.flops).c_str());
}

// A pass of one's own: a function from a graph to a graph, in the compiler and at run time alike.

#include <treadle/graph/text.hpp>
#include <treadle/treadle.hpp>

#include <cstdio>

using namespace treadle;

/// scale(x, 1) is x.
constexpr Graph drop_unit_scales(Graph g, PassReport* report = nullptr) {
  return rewrite_and_sweep(std::move(g), "drop_unit_scales", report, [](Rewriter& r, std::int32_t n) {
    if (!r.is({n, 0}, op::scale) || r.old().get_number(n, key::factor) != 1) return false;  // false: copy the node
    r.replace({n, 0}, r.map(r.input(n, 0)));  // its readers read its input from here on
    return true;
  });
}

constexpr auto layer = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, 8});
  g.output("y", linear("proj", scale(x, 1.0), {.width = 8, .bias = false}));
  return g.finish();
};

static_assert(layer().count(op::scale) == 1 && drop_unit_scales(layer()).count(op::scale) == 0);

int main() {
  verifying_observer observer;  // the verifier after every pass
  const Graph g = Steps(layer(), observer) | drop_unit_scales | merge_common_subexpressions;
  std::printf("%s", observer.violation ? "broken" : to_text(g).c_str());
}

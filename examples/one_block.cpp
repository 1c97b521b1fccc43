// One block, any attention: the same projections, the variant as a value, fixed by the compiler or chosen at run time.

#include <treadle/treadle.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace treadle;

inline constexpr auto encoder = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 32});
  const Node y = self_attention("attn", x, {.heads = 4, .variant = longformer(256, {0})});
  const Node z = self_attention("mixer", y, {.heads = 4, .mask = causal, .variant = variants::linear()});
  g.output("y", self_attention("last", z, {.heads = 4, .variant = causal & window(255, 0)}));  // every mask is one
  return g.finish();
};
struct Encoder : Model<encoder> {};
static_assert(Encoder::optimised.count(op::attention) == 2 && Encoder::optimised.count(op::linear_attention) == 1);

Graph block(const AttentionVariant& variant) {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 32});
  g.output("y", self_attention("attn", x, {.heads = 4, .variant = variant}));
  return optimise(g.finish());
}

int main() {
  for (const AttentionVariant& variant :
       {AttentionVariant(), longformer(8, {0}), variants::linear(), performer({.features = 64}), variants::retention(),
        variants::nystrom(8), variants::hierarchical({.block = 8})}) {
    const Graph graph = block(variant);
    BoundModel model(graph, Parameters::random(graph, 2), {.backend = "simd"});
    model.bind_dims({{"batch", 1}, {"seq", 40}});
    const std::int64_t shape[] = {1, 40, 32};
    std::vector<float> x(40 * 32), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * static_cast<float>(i));
    model.run({{"x", dense_view(x.data(), f32, shape)}}, {{"y", dense_view(y.data(), f32, shape)}});
    std::printf("%-13s the last row begins %6.3f %6.3f\n", std::string(variant.name).c_str(), y[39 * 32],
                y[39 * 32 + 1]);
  }
}

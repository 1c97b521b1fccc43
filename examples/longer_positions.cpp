// One model at four times its trained length: rotary positions as they are, and scaled in five ways.

#include <treadle/treadle.hpp>

#include <cstdio>
#include <numbers>

using namespace treadle;

inline constexpr auto longer = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 64});
  const RopeScaling scalings[] = {RopeScaling{},         linear_scaling(4),
                                  ntk_scaling(4),        dynamic_ntk_scaling(4, 2048),
                                  yarn_scaling(4, 2048), llama3_scaling(4, 2048)};
  for (const RopeScaling& s : scalings)
    g.output(name(s.kind), self_attention(name(s.kind), x, {.heads = 2, .rope = RopeOptions{.scaling = s}}));
  return g.finish();
};
struct Longer : Model<longer> {};

int main() {
  // How often three of a head's 16 pairs turn over 8192 positions.
  const GraphView g = Longer::source.view();
  bool of_keys = true;
  for (std::int32_t n = 0; n < g.size(); ++n) {
    if (g.nodes[n].op != op::rope) continue;
    of_keys = !of_keys;
    if (of_keys) continue;  // turned as the queries before them
    const RotaryAngles angles = rotary_angles(g, n, 8192);
    const RotaryFrequencies f = rotary_frequencies(angles);
    const auto turns = [&](std::size_t pair) { return 8192 * f.values[pair] / (2 * std::numbers::pi); };
    std::printf("%-12s pair 0: %6.1f   pair 7: %6.2f   pair 15: %.3f   magnitude %.3f\n",
                std::string(name(angles.scaling)).c_str(), turns(0), turns(7), turns(15), f.magnitude);
  }
}

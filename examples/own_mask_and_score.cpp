// A mask and a score function of one's own, with a table that is bound when the model runs.

#include <treadle/treadle.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace treadle;

// Every second key among the last 4, 8 or 12, by head.
inline constexpr auto own_mask =
    causal & mask_mod([](auto, auto h, auto q, auto k) { return ((q - k) % 2 == 0) & (q - k < 4 * (h + 1)); });

// ALiBi (Press et al. 2022, §3): a penalty that grows with the distance, with a slope for each head from a table.
inline constexpr auto own_score =
    score_mod([](auto score, auto, auto h, auto q, auto k) { return score - lookup("slopes", h) * (q - k); });

inline constexpr auto layer = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 24});
  g.input("slopes", f32, {3});  // lookups read the input of that name
  const Node q = split_heads(linear("q", x, {.width = 24}), 3);
  const Node k = split_heads(linear("k", x, {.width = 24}), 3);
  const Node v = split_heads(linear("v", x, {.width = 24}), 3);
  const Node y = attention(q, k, v, {.mask = own_mask, .score = own_score});
  g.output("y", linear("out", merge_heads(y), {.width = 24}));
  return g.finish();
};
struct Layer : Model<layer> {};

int main() {
  BoundModel model = Layer::bind(Parameters::random(Layer::source.view(), 2), {.backend = "simd"});
  std::vector<float> slopes = {0.5f, 0.25f, 0.125f};
  const std::int64_t heads[] = {3};

  for (const std::int64_t length : {3, 12, 40}) {
    model.bind_dims({{"batch", 1}, {"seq", length}});
    const std::int64_t shape[] = {1, length, 24};
    std::vector<float> x(static_cast<std::size_t>(length) * 24), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.1f * static_cast<float>(i));
    model.run({{"x", dense_view(x.data(), f32, shape)}, {"slopes", dense_view(slopes.data(), f32, heads)}},
              {{"y", dense_view(y.data(), f32, shape)}});

    double pairs = 0;
    for (const StepInfo& step : model.steps())
      if (step.op == op::attention) pairs = step.useful_flops / (4 * 8);  // 2·(head_dim + value_dim) FLOPs a pair
    std::printf("length %2d: %3.0f pairs are kept; the last row begins %.3f %.3f\n", static_cast<int>(length), pairs,
                y[y.size() - 24], y[y.size() - 23]);
  }
}

// Linear attention with a feature map of one's own, and a gated state that goes from step to step.

#include <treadle/treadle.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace treadle;

inline constexpr DimSpec n = dim("n");

// φ(x) = x² + 0.1 |x| + 0.01, traced: positive, so that the denominator is.
inline constexpr auto squares = feature_map([](auto x) { return x * x + 0.1 * abs(x) + 0.01; });

inline constexpr auto own_features = [] {
  Builder g;
  const Node q = g.input("q", f32, {1, 2, n, 4}), k = g.input("k", f32, {1, 2, n, 4}),
             v = g.input("v", f32, {1, 2, n, 4});
  g.output("y", linear_attention(q, k, v, {.causal = true, .feature_map = squares}));
  return g.finish();
};
struct OwnFeatures : Model<own_features> {};

// Gated delta rule; its state is kept between runs, so that a sequence may come in parts of any length.
inline constexpr auto gated_delta = [] {
  Builder g;
  const Node q = g.input("q", f32, {1, 2, n, 4}), k = g.input("k", f32, {1, 2, n, 4}),
             v = g.input("v", f32, {1, 2, n, 4});
  const Node memory = g.state("memory", f32, {1, 2, 4, 4});
  const Node beta = sigmoid(logsumexp(q)), log_gate = full(g, {1, 2, 1, 1}, -0.1);
  const RecurrentResult r = gated_delta_rule(q, l2_norm(k), v, log_gate, beta, {.state = memory});
  g.output("y", r.out);
  g.output("kept", append(memory, r.state, 2, 0));
  return g.finish();
};
struct GatedDelta : Model<gated_delta> {};

int main() {
  constexpr std::int64_t length = 40, width = 4;
  std::vector<float> x(2 * length * width), y(x.size()), kept(2 * width * width);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.3f * static_cast<float>(i));
  const std::int64_t kept_shape[] = {1, 2, width, width};

  // The rows [first, first + count) of both heads.
  const auto rows = [&](std::vector<float>& t, std::int64_t first, std::int64_t count) {
    const std::int64_t shape[] = {1, 2, count, width};
    TensorView part = dense_view(t.data() + first * width, f32, shape);
    part.strides = {2 * length * width, length * width, width, 1};
    return part;
  };

  BoundModel own = OwnFeatures::bind({}, {.backend = "simd"});
  own.bind_dims({{"n", length}});
  const TensorView all = rows(x, 0, length);
  own.run({{"q", all}, {"k", all}, {"v", all}}, {{"y", rows(y, 0, length)}});
  std::printf("own features: the last row begins %.3f %.3f\n", y[y.size() - 4], y[y.size() - 3]);

  BoundModel delta = GatedDelta::bind({}, {.backend = "simd"});
  const auto run = [&](std::int64_t first, std::int64_t count) {
    delta.bind_dims({{"n", count}});
    const TensorView part = rows(x, first, count);
    delta.run({{"q", part}, {"k", part}, {"v", part}},
              {{"y", rows(y, first, count)}, {"kept", dense_view(kept.data(), f32, kept_shape)}});
    for (const StepInfo& step : delta.steps())
      if (step.op == op::recurrent_attention)
        std::printf("tokens %2d to %2d: %s\n", static_cast<int>(first), static_cast<int>(first + count - 1),
                    step.form.c_str());
  };
  run(0, 38);
  run(38, 1);
  run(39, 1);
  std::printf("gated delta rule: the last row begins %.3f %.3f\n", y[y.size() - 4], y[y.size() - 3]);

  delta.reset_states();
  run(0, length);
  std::printf("in one run: the last row begins %.3f %.3f\n", y[y.size() - 4], y[y.size() - 3]);
}

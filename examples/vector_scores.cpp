// A score that is a function of the two rows, with a learned table, and its derivatives.

#include <treadle/graph/scalar/derivative.hpp>
#include <treadle/graph/scalar/print.hpp>
#include <treadle/treadle.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace treadle;

// Additive attention's score (Bahdanau et al. 2015) that fades with the distance. No tensor of queries × keys ×
// features exists, nor one of queries × keys.
inline constexpr auto fading = score_mod([](auto, auto, auto h, auto q, auto k) {
  return sum(q, [&](auto i) { return lookup("v", i) * tanh(q[i] + k[i]); }) - lookup("fade", h) * abs(q - k);
});

inline constexpr auto layer = [] {
  Builder g;
  const Node q = g.input("q", f32, {batch, 2, seq, 8});
  const Node k = g.input("k", f32, {batch, 2, seq, 8});
  g.input("v", f32, {8});
  g.input("fade", f32, {2});
  g.output("y", attention(q, k, k, {.mask = causal, .score = fading}));
  return g.finish();
};
struct Layer : Model<layer> {};

int main() {
  scalar::Pool pool;
  const int root = fading.add_to(pool);
  std::printf("score: %s\n", scalar::print(pool, root).c_str());
  for (const int table : scalar::lookups(pool, root))
    std::printf("by %s: %s\n", scalar::print(pool, table).c_str(),
                scalar::print(pool, scalar::derivative(pool, root, table)).c_str());

  BoundModel model = Layer::bind({}, {.backend = "simd"});
  model.bind_dims({{"batch", 1}, {"seq", 40}});
  const std::int64_t shape[] = {1, 2, 40, 8}, features[] = {8}, heads[] = {2};
  std::vector<float> q(2 * 40 * 8), k(q.size()), y(q.size()), v(8, 0.5f), fade = {0.0f, 0.25f};
  for (std::size_t i = 0; i < q.size(); ++i) {
    q[i] = std::sin(0.1f * static_cast<float>(i));
    k[i] = std::cos(0.3f * static_cast<float>(i));
  }
  model.run({{"q", dense_view(q.data(), f32, shape)},
             {"k", dense_view(k.data(), f32, shape)},
             {"v", dense_view(v.data(), f32, features)},
             {"fade", dense_view(fade.data(), f32, heads)}},
            {{"y", dense_view(y.data(), f32, shape)}});
  std::printf("the last rows begin %.3f and %.3f\n", y[39 * 8], y[(40 + 39) * 8]);
}

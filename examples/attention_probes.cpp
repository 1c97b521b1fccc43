// What attention looks at: probes beside an attention node, with a capped and sloped score and a sink.

#include <treadle/treadle.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace treadle;

inline constexpr auto probed = [] {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 32});
  const Node y = self_attention("attn", x,
                                {.heads = 4,
                                 .mask = causal,
                                 .rope = RopeOptions{},
                                 .qk_norm = QkNormOptions{},
                                 .score = alibi(4),
                                 .softcap = 20.0,
                                 .sink = true});
  g.output("y", y);
  g.output("entropy", attention_entropy(y));             // [batch, heads, seq]
  g.output("received", attention_column_sums(y));        // [batch, heads, seq]
  g.output("strongest", attention_top_k(y, 1).indices);  // [batch, heads, seq, 1]
  return g.finish();
};
struct Probed : Model<probed> {};

int main() {
  constexpr std::int64_t length = 12;
  BoundModel model = Probed::bind(Parameters::random(Probed::source.view(), 3), {.backend = "simd"});
  model.bind_dims({{"batch", 1}, {"seq", length}});
  std::vector<float> x(length * 32), y(x.size()), entropy(4 * length), received(4 * length);
  std::vector<std::int64_t> strongest(4 * length);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * static_cast<float>(i * i % 101));
  const std::int64_t rows[] = {1, length, 32}, by_query[] = {1, 4, length}, by_rank[] = {1, 4, length, 1};
  model.run({{"x", dense_view(x.data(), f32, rows)}}, {{"y", dense_view(y.data(), f32, rows)},
                                                       {"entropy", dense_view(entropy.data(), f32, by_query)},
                                                       {"received", dense_view(received.data(), f32, by_query)},
                                                       {"strongest", dense_view(strongest.data(), i64, by_rank)}});
  for (std::size_t h = 0; h < 4; ++h) {
    const std::size_t last = h * length + length - 1;
    std::printf("head %d: the last query has entropy %.2f and looks most at key %d; key 0 receives %.2f\n",
                static_cast<int>(h), entropy[last], static_cast<int>(strongest[last]), received[h * length]);
  }
}

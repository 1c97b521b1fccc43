// A small decoder: declared, bound to random parameters, run twice with different lengths.

#include <treadle/treadle.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

using namespace treadle;

inline constexpr auto tiny = [] {  // a model is a captureless lambda that builds a graph
  Builder g;
  const Node tokens = g.input("tokens", i32, {batch, seq});
  Node x = embedding("wte", tokens, {.vocabulary = 101, .width = 48}) + learned_positions("wpe", {.length = 256});
  x = repeat("h", 3, x, [](Node y) {  // one body, parameters of its own for every iteration
    y = y + self_attention("attn", layer_norm("ln_1", y), {.heads = 4, .mask = causal & window(64, 0)});
    return y + ffn("mlp", layer_norm("ln_2", y), {.hidden = 96, .activation = gelu_tanh});
  });
  g.output("logits", linear("lm_head", layer_norm("ln_f", x), {.width = 101}));
  return g.finish();
};
struct Tiny : Model<tiny> {};  // a named tag: shapes, names and rules are checked by the compiler
static_assert(Tiny::optimised.count(op::attention) == 1);

int main() {
  const Parameters parameters = Parameters::random(Tiny::source.view(), 1);
  std::printf("%zu parameter tensors\n", parameters.size());
  BoundModel model = Tiny::bind(parameters, {.backend = "simd"});

  for (const std::int64_t length : {5, 16}) {
    model.bind_dims({{"batch", 1}, {"seq", length}});  // plans: the only place that allocates
    const std::int64_t tokens_shape[] = {1, length}, logits_shape[] = {1, length, 101};
    std::vector<std::int32_t> tokens;
    for (std::int32_t i = 0; i < length; ++i) tokens.push_back(i * 7 % 101);
    std::vector<float> logits(static_cast<std::size_t>(length) * 101);
    model.run({{"tokens", dense_view(tokens.data(), i32, tokens_shape)}},
              {{"logits", dense_view(logits.data(), f32, logits_shape)}});

    const float* last = logits.data() + (length - 1) * 101;
    std::printf("length %2d: the last token's first logits %.2f %.2f %.2f\n", static_cast<int>(length), last[0],
                last[1], last[2]);
  }
}

// A user's file: a GPT of LAYERS layers, by `repeat` or (UNROLLED) layer by layer, its checks and its passes in the
// compiler, and the call that binds it. run.py measures how long compilers take for it.

#include <treadle/treadle.hpp>

using namespace treadle;

namespace {

constexpr int layers = LAYERS;

constexpr Node layer(std::string_view scope, Node y) {
  const auto name = [&](std::string_view leaf) { return Text(scope).append(scope.empty() ? "" : ".").append(leaf); };
  y = y + self_attention(name("attn").view(), layer_norm(name("ln_1").view(), y), {.heads = 12, .mask = causal});
  return y + ffn(name("mlp").view(), layer_norm(name("ln_2").view(), y), {.hidden = 3072, .activation = gelu_tanh});
}

}  // namespace

inline constexpr auto gpt = [] {
  Builder g;
  const Node tokens = g.input("tokens", i32, {batch, seq});
  Node x = embedding("wte", tokens, {.vocabulary = 50257, .width = 768}) + learned_positions("wpe", {.length = 1024});
#ifdef UNROLLED
  for (int i = 0; i < layers; ++i) x = layer(Text("h.").append(std::int64_t{i}).view(), x);
#else
  x = repeat("h", layers, x, [](Node y) { return layer("", y); });
#endif
  g.output("logits", linear("lm_head", layer_norm("ln_f", x), {.width = 50257, .bias = false}));
  return g.finish();
};
struct Gpt : Model<gpt, 8192> {};

BoundModel load(const Parameters& parameters) { return Gpt::bind(parameters); }

// Step after step with a cache, strided views, and an error.

#include <treadle/treadle.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace treadle;

// Two layers of attention over a KV cache: `fresh` new tokens come in, `past` ones lie in the states.
inline constexpr auto step = [] {
  Builder g;
  const DimSpec past = dim("past"), fresh = dim("fresh"), capacity = 32;
  g.input("history", i32, {past});  // binds the dim; its values are not read
  Node x = g.input("x", f32, {1, fresh, 16});
  x = repeat("h", 2, x, [&](Iteration& it, Node y) {
    const Node n = rms_norm("ln", y);
    const Node q = split_heads(linear("q", n, {.width = 16}), 2);
    const Node k = split_heads(linear("k", n, {.width = 8}), 1);  // one key head for both query heads
    const Node v = split_heads(linear("v", n, {.width = 8}), 1);
    const Node keys = append(it.state("k_cache", f32, {1, 1, capacity, 8}), k, 2, past);
    const Node values = append(it.state("v_cache", f32, {1, 1, capacity, 8}), v, 2, past);
    return y + linear("out", merge_heads(attention(q, keys, values, {.mask = causal})), {.width = 16});
  });
  g.output("y", x);
  return g.finish();
};
struct Step : Model<step> {};

int main() {
  BoundModel model = Step::bind(Parameters::random(Step::source.view(), 3), {.backend = "tbb", .threads = 2});

  std::int64_t past = 0;
  for (const std::int64_t fresh : {4, 1, 1}) {
    model.bind_dims({{"past", past}, {"fresh", fresh}});  // states keep what they hold, packed weights are kept too
    const std::int64_t history_shape[] = {past}, x_shape[] = {1, fresh, 16};
    std::vector<std::int32_t> history(32);
    std::vector<float> x;
    for (std::int64_t i = past * 16; i < (past + fresh) * 16; ++i) x.push_back(std::sin(0.3f * static_cast<float>(i)));

    // The caller's memory may have any strides: here the result is the left part of rows of 20 numbers.
    std::vector<float> rows(static_cast<std::size_t>(fresh) * 20, 0.0f);
    TensorView y = model.output_spec("y");  // [1, fresh, 16]
    y.data = rows.data();
    y.strides = {fresh * 20, 20, 1};
    model.run({{"history", dense_view(history.data(), i32, history_shape)}, {"x", dense_view(x.data(), f32, x_shape)}},
              {{"y", y}});
    past += fresh;
    const float* last = rows.data() + (fresh - 1) * 20;
    std::printf("%d tokens: %.3f %.3f … %.3f | %.3f\n", static_cast<int>(past), last[0], last[1], last[15], last[16]);
  }

  const TensorView keys = model.state("h.k_cache");  // [iterations, batch, key heads, capacity, head_dim]
  std::printf("the cache of keys: [%d, %d, %d, %d, %d], first number %.3f\n", static_cast<int>(keys.shape[0]),
              static_cast<int>(keys.shape[1]), static_cast<int>(keys.shape[2]), static_cast<int>(keys.shape[3]),
              static_cast<int>(keys.shape[4]), keys.as<const float>()[0]);

  try {
    model.bind_dims({{"past", 30}, {"fresh", 3}});
  } catch (const Error& e) {
    std::printf("error: %s\n", e.what());
  }
}

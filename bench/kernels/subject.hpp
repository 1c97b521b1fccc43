#pragma once
// What the programs here measure: a bound model with tensors of its own.

#include <treadle/treadle.hpp>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace treadle::bench {

inline double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// The inputs hold normal numbers, or `entry` everywhere; token ids are 0.
class Subject {
  Graph graph_;  // names of tensors point into it

 public:
  explicit Subject(Graph graph, BindOptions options = {.backend = "simd"}, std::optional<float> entry = {})
      : graph_(std::move(graph)), model(graph_, Parameters::random(graph_, 1), options) {
    model.bind_dims({});
    const GraphView g = graph_;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::int32_t i = 0; i < g.size(); ++i) {
      const bool in = g.nodes[i].op == op::input;
      if (!in && g.nodes[i].op != op::output) continue;
      TensorView view = in ? model.input_spec(g.leaf(i)) : model.output_spec(g.leaf(i));
      std::vector<float>& data = memory_.emplace_back(static_cast<std::size_t>(view.size()));
      if (in && view.dtype == f32)
        std::generate(data.begin(), data.end(), [&] { return entry ? *entry : normal(random); });
      view.data = data.data();
      (in ? inputs_ : outputs_).push_back({g.leaf(i), view});
      if (in) input_size += data.size();
    }
  }
  void run() { model.run(inputs_, outputs_); }

  BoundModel model;
  std::size_t input_size = 0;  ///< elements

 private:
  std::vector<std::vector<float>> memory_;
  std::vector<NamedTensor> inputs_, outputs_;
};

/// An encoder layer of 2017, post-norm, with a feed-forward block of four times the width.
inline Graph encoder_layer(std::int64_t batch_size, std::int64_t length, std::int64_t width, std::int64_t heads) {
  Builder g;
  const Node x = g.input("x", f32, {batch_size, length, width});
  const Node h = layer_norm("norm1", x + self_attention("attn", x, {.heads = heads}));
  g.output("y", layer_norm("norm2", h + ffn("mlp", h, {.hidden = 4 * width})));
  return g.finish();
}

}  // namespace treadle::bench

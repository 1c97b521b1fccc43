#include "weight_maps.hpp"

#include "attention_model.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/ops/attention_probe.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace treadle::cli {

namespace {

constexpr std::int64_t most_tokens = 1024;

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t there = std::min<std::size_t>(3, bytes.size() - i);
    unsigned word = 0;
    for (std::size_t j = 0; j < 3; ++j) word = word << 8 | (j < there ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += j <= there ? letters[word >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

std::uint8_t byte_of(float weight) {
  if (!(weight > 0)) return 0;  // and what is no number
  return static_cast<std::uint8_t>(std::lround(255 * std::sqrt(std::min(weight, 1.0F))));
}

/// [n, n] to [m, m].
std::vector<float> pooled(const float* weights, std::int64_t n, std::int64_t by) {
  const std::int64_t m = (n + by - 1) / by;
  std::vector<float> small(static_cast<std::size_t>(m * m));
  for (std::int64_t q = 0; q < n; ++q) {
    const std::int64_t of_row = std::min(by, n - q / by * by);
    for (std::int64_t k = 0; k < n; ++k)
      small[static_cast<std::size_t>(q / by * m + k / by)] += weights[q * n + k] / static_cast<float>(of_row);
  }
  return small;
}

}  // namespace

std::optional<WeightMap> variant_weights(const Variant& variant, const AttentionShape& shape, const Tensors& tensors,
                                         const MeasureOptions& options, std::int64_t most) {
  if (variant.weights != Variant::Weights::softmax || shape.length > most_tokens) return std::nullopt;
  const std::int64_t n = shape.length, by = (n + most - 1) / most;
  std::vector<float> weights(static_cast<std::size_t>(shape.heads * n * n));
  try {
    AttentionShape one = shape;
    one.batch = 1;
    const Graph graph = attention_model(variant, one, true);
    BoundModel model(graph, Parameters::random(graph, 1, {{"seq", n}}),
                     {.backend = options.backend, .isa = options.isa, .threads = options.threads});
    model.bind_dims({{"batch", 1}, {"seq", n}});
    const auto view = [&](const float* x, std::int64_t heads) {
      const std::int64_t s[] = {1, heads, n, shape.head_dim};
      return dense_view(const_cast<float*>(x), f32, s);  // only read
    };
    std::vector<NamedTensor> in = {{"q", view(tensors.q, shape.heads)},
                                   {"k", view(tensors.k, shape.kv_heads)},
                                   {"v", view(tensors.v, shape.kv_heads)}};
    std::vector<std::uint8_t> table;
    if (variant.table) {
      const std::int64_t blocks = variant.table->blocks(n), of_table[] = {blocks, blocks};
      table = variant.table->make(blocks);
      in.push_back({variant.table->name, dense_view(table.data(), boolean, of_table)});
    }
    const std::int64_t of_weights[] = {1, shape.heads, n, n};
    const NamedTensor out{"weights", dense_view(weights.data(), f32, of_weights)};
    model.run(in, std::span(&out, 1));
  } catch (const Error&) {
    return std::nullopt;  // not one attention with weights of its own
  }
  WeightMap map;
  map.name = variant.name;
  if (by > 1) map.note = fmt::format("{} tokens in groups of {}: summed over keys, averaged over queries.", n, by);
  for (std::int64_t i = 0; i < n; i += by)
    map.queries.push_back(by == 1 ? std::to_string(i) : fmt::format("{}–{}", i, std::min(i + by, n) - 1));
  map.keys = map.queries;
  WeightLayer& layer = map.layers.emplace_back();
  layer.name = "heads";
  for (std::int64_t h = 0; h < shape.heads; ++h) layer.heads.push_back(pooled(weights.data() + h * n * n, n, by));
  return map;
}

Json to_json_object(const WeightMap& map) {
  Json j = {{"name", map.name}, {"note", map.note}, {"queries", map.queries}, {"keys", map.keys}};
  j["layers"] = Json::array();
  std::vector<std::uint8_t> bytes;
  for (const WeightLayer& layer : map.layers) {
    Json heads = Json::array();
    for (const std::vector<float>& weights : layer.heads) {
      bytes.resize(weights.size());
      std::transform(weights.begin(), weights.end(), bytes.begin(), byte_of);
      heads.push_back(base64(bytes));
    }
    j["layers"].push_back({{"name", layer.name}, {"heads", std::move(heads)}});
  }
  return j;
}

}  // namespace treadle::cli

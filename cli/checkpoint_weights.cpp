#include "checkpoint_weights.hpp"

#include "probe_weights.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/json.hpp>
#include <treadle/models/checkpoint.hpp>
#ifdef TREADLE_TEXT
#include <treadle/io/text/tokenizer.hpp>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace treadle::cli {

namespace {

constexpr std::int64_t most_tokens = 1024;

std::vector<std::string> numbered(std::vector<std::string> labels, std::int64_t count) {
  for (auto i = static_cast<std::int64_t>(labels.size()); i < count; ++i) labels.push_back(std::to_string(i));
  labels.resize(static_cast<std::size_t>(count));
  return labels;
}

/// Whether no query of any head sees a later key, where there are as many.
bool looks_back_only(const io::Tensor& w, std::int64_t queries, std::int64_t keys) {
  if (queries != keys || queries < 2) return false;
  const std::span<const float> x = w.as<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (at % keys > at / keys % queries && x[i] != 0) return false;
  }
  return true;
}

}  // namespace

std::vector<WeightMap> checkpoint_weights(const std::filesystem::path& folder, ModelInput input,
                                          const BindOptions& bind, const AttentionVariant& attention) {
  models::LoadOptions options;
  for (const auto& given : input.tensors) options.given_inputs.push_back(given.first);
  options.attention = attention;
  models::LoadedModel loaded = models::load_checkpoint(folder, options);
  ProbedGraph probed = with_weights(loaded.graph.view());
  if (probed.attentions.empty())
    throw Error(fmt::format("{}: no attention of the model has weights of single pairs", folder.string()));
  loaded.graph = std::move(probed.graph);
  for (const auto& [name, tensor] : input.tensors)
    if (tensor.shape.size() == 2 && tensor.shape[1] > most_tokens)
      throw Error(fmt::format("input '{}' has {} tokens: a map of weights takes at most {}", name, tensor.shape[1],
                              most_tokens));
  BoundModel model = loaded.bind(bind);
  const auto results = models::run_model(model, loaded, std::move(input.tensors));

  std::vector<WeightMap> maps;
  for (const ProbedAttention& a : probed.attentions) {
    const io::Tensor& w = results.at(a.output);
    const std::size_t rank = w.shape.size();
    const std::int64_t batch = w.shape[rank - 4], heads = w.shape[rank - 3], queries = w.shape[rank - 2],
                       keys = w.shape[rank - 1];
    if (queries > most_tokens || keys > most_tokens)
      throw Error(fmt::format("{} queries and {} keys: a map of weights takes at most {}", queries, keys, most_tokens));
    const bool decoder = a.same_lengths && looks_back_only(w, queries, keys);
    const std::string name = !a.same_lengths ? "cross-attention"
                             : decoder       ? "decoder self-attention"
                                             : "encoder self-attention";
    auto map = std::find_if(maps.begin(), maps.end(), [&](const WeightMap& m) {
      return m.name == name && static_cast<std::int64_t>(m.queries.size()) == queries &&
             static_cast<std::int64_t>(m.keys.size()) == keys;
    });
    if (map == maps.end()) {
      WeightMap m;
      m.name = name;
      const bool second = !input.target.empty() && (decoder || !a.same_lengths);
      m.queries = numbered(second ? input.target : input.source, queries);
      m.keys = numbered(second && a.same_lengths ? input.target : input.source, keys);
      maps.push_back(std::move(m));
      map = maps.end() - 1;
    }
    std::int64_t layers = 1;
    for (std::size_t i = 0; i + 4 < rank; ++i) layers *= w.shape[i];
    const float* from = w.as<float>().data();
    for (std::int64_t l = 0; l < layers; ++l) {
      WeightLayer layer;
      layer.name = std::to_string(map->layers.size());
      for (std::int64_t h = 0; h < heads; ++h) {
        const float* head = from + (l * batch * heads + h) * queries * keys;
        layer.heads.emplace_back(head, head + queries * keys);
      }
      map->layers.push_back(std::move(layer));
    }
  }
  return maps;
}

ModelInput sentence_input([[maybe_unused]] const std::filesystem::path& folder,
                          [[maybe_unused]] const std::string& sentence, [[maybe_unused]] const std::string& target,
                          [[maybe_unused]] std::int64_t most) {
#ifdef TREADLE_TEXT
  const text::Tokenizer tokenizer = text::Tokenizer::open(folder);
  const auto config = io::read_json(folder / "config.json");
  ModelInput input;
  const auto add = [&](const char* name, std::vector<std::int32_t> ids, std::vector<std::string>& labels) {
    if (ids.empty()) throw Error("the sentence has no tokens: write some words");
    for (const std::int32_t id : ids) labels.push_back(tokenizer.token_of(id));
    io::Tensor t(i32, {1, static_cast<std::int64_t>(ids.size())});
    std::copy(ids.begin(), ids.end(), t.as<std::int32_t>().begin());
    input.tensors.emplace(name, std::move(t));
  };
  add("input_ids", tokenizer.encode(sentence, {.max_length = most}), input.source);
  if (config.value("model_type", "") == "t5") {
    std::vector<std::int32_t> ids = {config.value("decoder_start_token_id", 0)};
    const auto said = tokenizer.encode(target.empty() ? sentence : target, {.max_length = most - 1});
    ids.insert(ids.end(), said.begin(), said.end());
    add("decoder_input_ids", std::move(ids), input.target);
  } else if (!target.empty()) {
    throw Error("--target is what a decoder beside an encoder has written, as in t5: this model has none");
  }
  return input;
#else
  throw Error("a sentence needs the tokenizers: build with TREADLE_TEXT=ON, or give token ids with --inputs");
#endif
}

}  // namespace treadle::cli

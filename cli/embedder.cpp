#include "embedder.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace treadle::cli {

namespace fs = std::filesystem;

Embedder::Embedder(const fs::path& folder, BindOptions bind, const AttentionVariant& attention)
    : tokenizer_(text::Tokenizer::open(folder)),
      loaded_(models::load_checkpoint(folder, {.attention = attention})),
      model_(loaded_.bind(bind)) {
  if (loaded_.model_type != "bert")
    throw Error(fmt::format("{}: is a checkpoint of {}; sentence vectors are made with bert", folder.string(),
                            loaded_.model_type));
  const nlohmann::json config = io::read_json(folder / "config.json");
  width_ = config.value("hidden_size", std::int64_t{0});
  longest_ = config.value("max_position_embeddings", std::int64_t{512});
  if (const fs::path own = folder / "sentence_bert_config.json"; fs::exists(own))
    longest_ = std::min(longest_, io::read_json(own).value("max_seq_length", longest_));
}

std::vector<float> Embedder::embed(const std::vector<std::string>& texts, std::int64_t batch,
                                   const std::function<void(std::size_t)>& progress) {
  std::map<std::size_t, std::vector<std::size_t>> by_length;  // numbers of the texts
  std::vector<std::vector<std::int32_t>> ids;
  ids.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ids.push_back(tokenizer_.encode(texts[i], {.max_length = longest_}));
    by_length[ids.back().size()].push_back(i);
  }
  std::vector<float> vectors(texts.size() * static_cast<std::size_t>(width_));
  std::size_t done = 0;
  for (const auto& [length, numbers] : by_length) {
    for (std::size_t first = 0; first < numbers.size(); first += static_cast<std::size_t>(batch)) {
      const std::size_t count = std::min(static_cast<std::size_t>(batch), numbers.size() - first);
      io::Tensor tokens(i32, {static_cast<std::int64_t>(count), static_cast<std::int64_t>(length)});
      for (std::size_t r = 0; r < count; ++r)
        std::copy(ids[numbers[first + r]].begin(), ids[numbers[first + r]].end(),
                  tokens.as<std::int32_t>().begin() + static_cast<std::ptrdiff_t>(r * length));
      const auto results = models::run_model(model_, loaded_, {{"input_ids", std::move(tokens)}});
      const auto hidden = results.at("hidden").as<float>();
      const auto width = static_cast<std::size_t>(width_);
      for (std::size_t r = 0; r < count; ++r) {
        std::vector<double> mean(width, 0.0);
        for (std::size_t t = 0; t < length; ++t)
          for (std::size_t c = 0; c < width; ++c) mean[c] += static_cast<double>(hidden[(r * length + t) * width + c]);
        double squares = 0;
        for (const double x : mean) squares += x * x;
        const double norm = squares > 0 ? 1 / std::sqrt(squares) : 0;
        for (std::size_t c = 0; c < width; ++c)
          vectors[numbers[first + r] * width + c] = static_cast<float>(mean[c] * norm);
      }
      done += count;
      if (progress) progress(done);
    }
  }
  return vectors;
}

}  // namespace treadle::cli

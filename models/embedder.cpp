#include <treadle/models/embedder.hpp>

#include <treadle/backends/error.hpp>
#include <treadle/io/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace treadle::models {

namespace fs = std::filesystem;

std::int64_t longest_text(const fs::path& folder) {
  const std::int64_t positions =
      io::read_json(folder / "config.json").value("max_position_embeddings", std::int64_t{512});
  const fs::path own = folder / "sentence_bert_config.json";
  return fs::exists(own) ? std::min(positions, io::read_json(own).value("max_seq_length", positions)) : positions;
}

std::vector<double> mean_vectors(std::span<const float> hidden, std::int64_t rows, std::int64_t tokens) {
  const std::size_t width = hidden.size() / static_cast<std::size_t>(rows * tokens);
  std::vector<double> vectors(static_cast<std::size_t>(rows) * width, 0.0);
  const float* from = hidden.data();
  for (std::int64_t r = 0; r < rows; ++r) {
    double* mean = vectors.data() + static_cast<std::size_t>(r) * width;
    for (std::int64_t t = 0; t < tokens; ++t)
      for (std::size_t c = 0; c < width; ++c) mean[c] += static_cast<double>(*from++);
    const double length = std::sqrt(std::inner_product(mean, mean + width, mean, 0.0));
    for (std::size_t c = 0; c < width; ++c) mean[c] = length > 0 ? mean[c] / length : 0;
  }
  return vectors;
}

Embedder::Embedder(const fs::path& folder, BindOptions bind, const AttentionVariant& attention)
    : tokenizer_(text::Tokenizer::open(folder)),
      loaded_(load_checkpoint(folder, {.attention = attention})),
      model_(loaded_.bind(bind)) {
  if (loaded_.model_type != "bert")
    throw Error(folder.string() + ": is a checkpoint of " + loaded_.model_type +
                "; sentence vectors are made with bert");
  width_ = io::read_json(folder / "config.json").value("hidden_size", std::int64_t{0});
  longest_ = longest_text(folder);
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
      const auto results = run_model(model_, loaded_, {{"input_ids", std::move(tokens)}});
      const std::vector<double> means = mean_vectors(results.at("hidden").as<float>(), static_cast<std::int64_t>(count),
                                                     static_cast<std::int64_t>(length));
      const auto width = static_cast<std::size_t>(width_);
      for (std::size_t r = 0; r < count; ++r)
        for (std::size_t c = 0; c < width; ++c)
          vectors[numbers[first + r] * width + c] = static_cast<float>(means[r * width + c]);
      done += count;
      if (progress) progress(done);
    }
  }
  return vectors;
}

}  // namespace treadle::models

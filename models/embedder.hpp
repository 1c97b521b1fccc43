#pragma once
// Sentence vectors: the mean of an encoder's last hidden states over a text's tokens, of length 1 (Reimers and Gurevych
// 2019, Sentence-BERT). In the library Treadle::text, since it needs a tokenizer.

#include <treadle/io/text/tokenizer.hpp>
#include <treadle/models/checkpoint.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::models {

/// Tokens of a text that a checkpoint is made for, special ones included: max_seq_length of sentence_bert_config.json,
/// else the length of its table of positions.
std::int64_t longest_text(const std::filesystem::path& folder);

/// The means of hidden states [rows, tokens, width] over the tokens, each of length 1: [rows, width].
std::vector<double> mean_vectors(std::span<const float> hidden, std::int64_t rows, std::int64_t tokens);

class Embedder {
 public:
  /// A checkpoint's folder with its tokenizer. Throws Error: no BERT, no tokenizer.
  Embedder(const std::filesystem::path& folder, BindOptions bind, const AttentionVariant& attention = {});

  std::int64_t width() const { return width_; }
  std::int64_t longest() const { return longest_; }  ///< tokens of a text; what is longer is cut
  const text::Tokenizer& tokenizer() const { return tokenizer_; }

  /// One vector a text, [texts, width]. Texts of equal length run together, up to `batch` at once, so that nothing is
  /// padded and any attention will do. `progress` is told how many texts are done.
  std::vector<float> embed(const std::vector<std::string>& texts, std::int64_t batch = 32,
                           const std::function<void(std::size_t done)>& progress = {});

 private:
  text::Tokenizer tokenizer_;
  LoadedModel loaded_;
  BoundModel model_;
  std::int64_t width_ = 0, longest_ = 512;
};

}  // namespace treadle::models

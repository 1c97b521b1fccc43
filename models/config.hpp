#pragma once
// A checkpoint's config.json, read with sentences for what is wrong. Not installed: it shows a JSON library's type.

#include <treadle/ops/elementwise.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace treadle::models {

/// Every reader throws Error, with the file, the key, its value and what would be right.
class Config {
 public:
  static Config read(const std::filesystem::path& path);

  /// Whether the key is there and not null.
  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t least = 1) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least = 1) const;
  double number_or(std::string_view key, double otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  /// A list of integers; a single one stands for `count` equal ones.
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t count, std::int64_t least) const;
  /// By the names that the Transformers library uses: gelu, gelu_new, relu, silu, …
  activation function_or(std::string_view key, std::string_view otherwise) const;
  /// How many labels a classifier has: those of id2label, else num_labels, else 2.
  std::int64_t labels() const;
  /// An object inside, with the same sentences.
  Config object(std::string_view key) const;

  /// Refuses any value of `key` but these; a key that is missing is fine.
  void only(std::string_view key, std::initializer_list<nlohmann::json> supported) const;
  [[noreturn]] void refuse(std::string_view key, std::string_view right) const;

  const nlohmann::json& json() const { return json_; }

 private:
  nlohmann::json json_;
  std::string where_;  ///< the file, and the path to an object inside

  const nlohmann::json* find(std::string_view key) const;
};

}  // namespace treadle::models

#pragma once
// The files beside a vocabulary: tokenizer_config.json and special_tokens_map.json.

#include <treadle/io/text/parts.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>

namespace treadle::text {

/// A file that holds a JSON object. Throws io::Error.
nlohmann::json read_object(const std::filesystem::path& path);

/// The value of a key, of the type that is asked for. Throws io::Error with `where` if it is missing or of another
/// type.
const nlohmann::json& need(const nlohmann::json& object, const char* key, const std::string& where);
std::string need_string(const nlohmann::json& object, const char* key, const std::string& where);
/// `otherwise` where the key is missing or null.
bool flag_or(const nlohmann::json& object, const char* key, bool otherwise, const std::string& where);
std::string string_or(const nlohmann::json& object, const char* key, std::string otherwise, const std::string& where);

class Config {
 public:
  /// What lies beside the file; nothing is needed.
  static Config beside(const std::filesystem::path& file);

  /// "BertTokenizer" without its ending: "Bert"; "" if not told.
  std::string tokenizer_class() const;
  std::optional<bool> flag(const char* key) const;
  /// A whole number from 0 to 65536.
  std::optional<std::int32_t> count(const char* key) const;
  /// A special token such as "pad_token".
  std::optional<std::string> token(const char* role) const;
  /// "path of tokenizer_config.json", for messages.
  const std::string& where() const { return where_; }

  /// Adds what added_tokens_decoder lists and the special tokens that have ids to the tokens that are found in texts.
  void add_tokens(Parts& parts) const;

  /// Ids of the special tokens, by their names here or by those that published vocabularies use.
  void fill_special_ids(Parts& parts) const;

 private:
  nlohmann::json config_, map_;
  std::string where_;
};

/// Makes a token of the vocabulary one that is found in texts; adds it to the vocabulary if it is new.
void add_token(Parts& parts, const std::string& content, AddedToken token, const std::string& where);

/// The flags of an added token as JSON lists them.
AddedToken added_token(const nlohmann::json& entry, const std::string& where);

}  // namespace treadle::text

// tokenizer.json, as Hugging Face's tokenizers library writes it.

#include <treadle/io/error.hpp>
#include <treadle/io/text/bpe.hpp>
#include <treadle/io/text/config.hpp>
#include <treadle/io/text/json_steps.hpp>
#include <treadle/io/text/open.hpp>
#include <treadle/io/text/word_piece.hpp>

namespace treadle::text {

using nlohmann::json;

namespace {

std::string model_type(const json& model, const std::string& where) {
  // The first versions of the format did not name the type.
  if (model.is_object() && !model.contains("type")) {
    if (model.contains("merges")) return "BPE";
    if (model.contains("max_input_chars_per_word")) return "WordPiece";
  }
  return need_string(model, "type", where);
}

std::optional<std::int32_t> unknown_token(const json& model, const Vocabulary& vocabulary, const std::string& where) {
  const std::string token = string_or(model, "unk_token", "", where);
  if (token.empty()) return std::nullopt;
  const auto id = vocabulary.find(token);
  if (!id) throw io::Error(where + ": unk_token '" + token + "' is not in the vocabulary");
  return id;
}

std::unique_ptr<const Model> read_word_piece(const json& model, const Vocabulary& vocabulary,
                                             const std::string& where) {
  const auto unknown = unknown_token(model, vocabulary, where);
  if (!unknown) throw io::Error(where + ": 'unk_token' is missing; WordPiece needs one");
  WordPieceOptions options{.prefix = string_or(model, "continuing_subword_prefix", "##", where), .unknown = *unknown};
  if (const auto at = model.find("max_input_chars_per_word"); at != model.end()) {
    if (!at->is_number_unsigned())
      throw io::Error(where + ": 'max_input_chars_per_word' must be a whole number, but is " + at->dump());
    options.longest = at->get<std::size_t>();
  }
  return word_piece(std::move(options));
}

std::unique_ptr<const Model> read_byte_pairs(const json& model, const Vocabulary& vocabulary,
                                             const std::string& where) {
  const json& list = need(model, "merges", where);
  if (!list.is_array()) throw io::Error(where + ": 'merges' must be a list");
  Merges merges;
  merges.reserve(list.size());
  for (const json& m : list) {
    const std::string place = where + ": merge " + std::to_string(merges.size() + 1);
    if (m.is_string())
      merges.push_back(split_merge(m.get_ref<const std::string&>(), place));
    else if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string())
      merges.emplace_back(m[0].get<std::string>(), m[1].get<std::string>());
    else
      throw io::Error(place + ": is neither \"a b\" nor [\"a\", \"b\"]");
  }
  if (const auto at = model.find("dropout"); at != model.end() && !at->is_null() && *at != 0)
    throw io::Error(where + ": dropout " + at->dump() + " is not supported: ids would be random; null is");
  BpeOptions options{.unknown = unknown_token(model, vocabulary, where),
                     .fuse_unknown = flag_or(model, "fuse_unk", false, where),
                     .byte_fallback = flag_or(model, "byte_fallback", false, where),
                     .ignore_merges = flag_or(model, "ignore_merges", false, where),
                     .prefix = string_or(model, "continuing_subword_prefix", "", where),
                     .suffix = string_or(model, "end_of_word_suffix", "", where)};
  return byte_pairs(merges, vocabulary, std::move(options), where);
}

void read_added_tokens(const json& file, Parts& parts, const std::string& where) {
  const auto list = file.find("added_tokens");
  if (list == file.end() || list->is_null()) return;
  if (!list->is_array()) throw io::Error(where + ": 'added_tokens' must be a list");
  for (const json& entry : *list) {
    const std::string place = where + ": added_tokens";
    const std::string content = need_string(entry, "content", place);
    const json& id = need(entry, "id", place);
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= Vocabulary::most_ids)
      throw io::Error(std::string(place).append(": '").append(content).append("' has the id ").append(id.dump()) +
                      "; ids are whole numbers from 0 on");
    AddedToken token = added_token(entry, place);
    token.id = id.get<std::int32_t>();
    add_token(parts, content, token, place);
  }
}

}  // namespace

bool is_unigram(const std::filesystem::path& path) {
  const json file = read_object(path);
  const auto model = file.find("model");
  return model != file.end() && model->is_object() && model->value("type", json()) == "Unigram";
}

Parts open_json(const std::filesystem::path& path) {
  const json file = read_object(path);
  const std::string where = path.string();
  const json& model = need(file, "model", where);
  const std::string type = model_type(model, where + ": model");
  if (type == "Unigram")
    throw io::Error(where +
                    ": Unigram models are not read from tokenizer.json: use the spiece.model or tokenizer.model " +
                    "that it was made from");
  if (type != "WordPiece" && type != "BPE")
    throw io::Error(where + ": the model '" + type + "' is not supported; WordPiece and BPE are");
  Parts parts;
  parts.kind = type;
  fill_vocabulary(parts.vocabulary, need(model, "vocab", where + ": model"), where + ": model.vocab");
  const auto part = [&](const char* key) {
    const auto at = file.find(key);
    return at == file.end() ? json() : *at;
  };
  read_normalizer(part("normalizer"), parts.normalize, where + ": normalizer");
  read_pre_tokenizer(part("pre_tokenizer"), parts.split, where + ": pre_tokenizer");
  parts.model = type == "BPE" ? read_byte_pairs(model, parts.vocabulary, where + ": model")
                              : read_word_piece(model, parts.vocabulary, where + ": model");
  read_added_tokens(file, parts, where);
  read_post_processor(part("post_processor"), parts, where + ": post_processor");
  if (part("decoder").is_null())
    parts.separator = " ";
  else
    read_decoder(part("decoder"), parts.decode, where + ": decoder");
  Config::beside(path).fill_special_ids(parts);
  return parts;
}

}  // namespace treadle::text

#include <treadle/io/error.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/text/config.hpp>

#include <array>
#include <charconv>

namespace treadle::text {

using nlohmann::json;

namespace {

constexpr std::array roles = {"pad_token", "unk_token", "bos_token", "eos_token",
                              "cls_token", "sep_token", "mask_token"};

/// Published names, in the order of `roles`.
constexpr std::array<std::array<const char*, 4>, 7> usual = {{{"[PAD]", "<pad>"},
                                                              {"[UNK]", "<unk>"},
                                                              {"<s>", "<|begin_of_text|>", "<|startoftext|>"},
                                                              {"</s>", "<|endoftext|>", "<|end_of_text|>"},
                                                              {"[CLS]"},
                                                              {"[SEP]"},
                                                              {"[MASK]", "<mask>"}}};

std::array<std::optional<std::int32_t>*, 7> fields(SpecialIds& s) {
  return {&s.pad, &s.unk, &s.bos, &s.eos, &s.cls, &s.sep, &s.mask};
}

}  // namespace

json read_object(const std::filesystem::path& path) {
  json result = io::read_json(path);
  if (!result.is_object()) throw io::Error(path.string() + ": is no JSON object; { … } is needed");
  return result;
}

const json& need(const json& object, const char* key, const std::string& where) {
  if (!object.is_object()) throw io::Error(where + ": must be an object { … }, but is " + object.type_name());
  const auto at = object.find(key);
  if (at == object.end()) throw io::Error(where + ": '" + key + "' is missing");
  return *at;
}

std::string need_string(const json& object, const char* key, const std::string& where) {
  const json& value = need(object, key, where);
  if (!value.is_string()) throw io::Error(where + ": '" + key + "' must be a string, but is " + value.type_name());
  return value.get<std::string>();
}

bool flag_or(const json& object, const char* key, bool otherwise, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return otherwise;
  if (!at->is_boolean()) throw io::Error(where + ": '" + key + "' must be true or false, but is " + at->type_name());
  return at->get<bool>();
}

std::string string_or(const json& object, const char* key, std::string otherwise, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return otherwise;
  if (!at->is_string()) throw io::Error(where + ": '" + key + "' must be a string, but is " + at->type_name());
  return at->get<std::string>();
}

AddedToken added_token(const json& entry, const std::string& where) {
  AddedToken token;
  token.special = flag_or(entry, "special", false, where);
  token.normalized = flag_or(entry, "normalized", !token.special, where);
  token.single_word = flag_or(entry, "single_word", false, where);
  token.strip_left = flag_or(entry, "lstrip", false, where);
  token.strip_right = flag_or(entry, "rstrip", false, where);
  return token;
}

void add_token(Parts& parts, const std::string& content, AddedToken token, const std::string& where) {
  if (content.empty()) return;
  const auto known = parts.vocabulary.find(content);
  if (!known)
    parts.vocabulary.add(content, token.id, where);
  else if (*known != token.id)
    throw io::Error(where + ": the added token '" + content + "' has id " + std::to_string(token.id) +
                    ", but the vocabulary gives it " + std::to_string(*known));
  if (token.special) parts.added.special.insert(token.id);
  if (token.normalized)
    parts.added.normalized.add(parts.normalized(content), token);
  else
    parts.added.raw.add(content, token);
}

Config Config::beside(const std::filesystem::path& file) {
  Config c;
  c.config_ = c.map_ = json::object();
  const auto path = file.parent_path() / "tokenizer_config.json", map = file.parent_path() / "special_tokens_map.json";
  c.where_ = path.string();
  if (std::filesystem::exists(path)) c.config_ = read_object(path);
  if (std::filesystem::exists(map)) c.map_ = read_object(map);
  return c;
}

std::string Config::tokenizer_class() const {
  std::string name = string_or(config_, "tokenizer_class", "", where_);
  for (const std::string_view ending : {"Fast", "Tokenizer"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

std::optional<bool> Config::flag(const char* key) const {
  const auto at = config_.find(key);
  if (at == config_.end() || at->is_null()) return std::nullopt;
  return flag_or(config_, key, false, where_);
}

std::optional<std::int32_t> Config::count(const char* key) const {
  const auto at = config_.find(key);
  if (at == config_.end() || at->is_null()) return std::nullopt;
  constexpr std::int32_t most = 65536;
  if (!at->is_number_unsigned() || at->get<std::uint64_t>() > most)
    throw io::Error(where_ + ": '" + key + "' must be a whole number from 0 to " + std::to_string(most) + ", but is " +
                    at->dump());
  return at->get<std::int32_t>();
}

std::optional<std::string> Config::token(const char* role) const {
  for (const json* source : {&config_, &map_}) {
    const auto at = source->find(role);
    if (at == source->end() || at->is_null()) continue;
    if (at->is_object()) return need_string(*at, "content", where_ + ": " + role);
    return need_string(*source, role, where_);
  }
  return std::nullopt;
}

void Config::add_tokens(Parts& parts) const {
  const auto listed = config_.find("added_tokens_decoder");
  if (listed != config_.end() && listed->is_object()) {
    for (const auto& [key, entry] : listed->items()) {
      const std::string where = where_ + ": added_tokens_decoder: " + key;
      std::int32_t id = -1;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size() || id < 0)
        throw io::Error(where + ": the key must be an id");
      AddedToken token = added_token(entry, where);
      token.id = id;
      add_token(parts, need_string(entry, "content", where), token, where);
    }
  }
  for (const char* role : roles) {
    const auto name = token(role);
    const auto id = name ? parts.vocabulary.find(*name) : std::nullopt;
    if (id && !parts.added.special.contains(*id)) add_token(parts, *name, {.id = *id}, where_);
  }
}

void Config::fill_special_ids(Parts& parts) const {
  for (std::size_t r = 0; r < roles.size(); ++r) {
    std::optional<std::int32_t>& id = *fields(parts.special)[r];
    if (const auto name = token(roles[r])) id = parts.vocabulary.find(*name);
    for (const char* name : usual[r])
      if (!id && name != nullptr) id = parts.vocabulary.find(name);
  }
}

}  // namespace treadle::text

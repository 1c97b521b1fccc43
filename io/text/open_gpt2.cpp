#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/text.hpp>
#include <treadle/io/text/bpe.hpp>
#include <treadle/io/text/config.hpp>
#include <treadle/io/text/open.hpp>
#include <treadle/io/text/steps.hpp>

#include <algorithm>

namespace treadle::text {

namespace {

Merges read_merges(const std::filesystem::path& path) {
  const std::string text = io::read_text(path);
  require_utf8(text, path.string());
  Merges merges;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty() || row.starts_with("#version")) continue;
    merges.push_back(split_merge(row, path.string() + ": line " + std::to_string(line)));
  }
  return merges;
}

}  // namespace

std::pair<std::string, std::string> split_merge(std::string_view row, const std::string& where) {
  const std::size_t space = row.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == row.size() ||
      row.find(' ', space + 1) != std::string_view::npos)
    throw io::Error(where + ": " + io::in_quotes(row) +
                    " is no merge; a merge is two tokens with one space between them");
  return {std::string(row.substr(0, space)), std::string(row.substr(space + 1))};
}

void fill_vocabulary(Vocabulary& vocabulary, const nlohmann::json& tokens, const std::string& where) {
  if (!tokens.is_object()) throw io::Error(where + ": must be an object of tokens and ids");
  for (const auto& [token, id] : tokens.items()) {
    if (!id.is_number_integer() || (id.is_number_unsigned() && id.get<std::uint64_t>() > Vocabulary::most_ids))
      throw io::Error(std::string(where)
                          .append(": the token ")
                          .append(io::in_quotes(token))
                          .append(" has the id ")
                          .append(id.dump()) +
                      "; ids are whole numbers from 0 to " + std::to_string(Vocabulary::most_ids - 1));
    vocabulary.add(token, id.get<std::int64_t>(), where);
  }
  if (vocabulary.empty()) throw io::Error(where + ": has no tokens");
}

Parts open_gpt2(const std::filesystem::path& path) {
  const std::filesystem::path merges = path.parent_path() / "merges.txt";
  if (!std::filesystem::exists(merges))
    throw io::Error(merges.string() + ": no such file; a vocab.json of byte-level BPE needs its merges beside it");
  const Config config = Config::beside(path);
  const std::string name = config.tokenizer_class();
  const bool roberta = name == "Roberta" || name == "Longformer" || name == "Bart" || name == "LED";
  if (!roberta && !name.empty() && name != "GPT2" && name != "Qwen2")
    throw io::Error(config.where() + ": the tokenizer_class '" + name +
                    "Tokenizer' is not supported with vocab.json and " +
                    "merges.txt; those of GPT2, Roberta, Longformer, Bart and Qwen2 are, and others as tokenizer.json");
  Parts parts;
  parts.kind = "BPE";
  fill_vocabulary(parts.vocabulary, read_object(path), path.string());
  const auto unknown = parts.vocabulary.find(config.token("unk_token").value_or(roberta ? "<unk>" : "<|endoftext|>"));
  parts.model = byte_pairs(read_merges(merges), parts.vocabulary, {.unknown = unknown}, merges.string());
  const bool prefix = config.flag("add_prefix_space").value_or(false);
  if (name == "Qwen2") {
    parts.normalize.push_back(unicode_form(Form::nfc));
    parts.split.push_back(split_at(
        Regex(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
              R"(\s+(?!\S)|\s+)",
              "Qwen2"),
        SplitBehavior::isolated, false));
    parts.split.push_back(byte_level(prefix, false));
  } else {
    parts.split.push_back(byte_level(prefix, true));
  }
  parts.decode.push_back(decode_byte_level());
  config.add_tokens(parts);
  const auto around = [&](const char* role, const char* usual) {
    const std::string content = config.token(role).value_or(usual);
    const auto id = parts.vocabulary.find(content);
    if (!id) throw io::Error(path.string() + ": has no token '" + content + "', which " + name + "Tokenizer needs");
    return *id;
  };
  for (const char* usual : {"<|endoftext|>", "<s>", "</s>", "<pad>", "<unk>", "<mask>"}) {
    const auto id = parts.vocabulary.find(usual);
    if (!id || parts.added.special.contains(*id)) continue;
    // The space before RoBERTa's mask belongs to it.
    add_token(parts, usual, {.id = *id, .strip_left = std::string_view(usual) == "<mask>"}, path.string());
  }
  if (roberta) {
    parts.before = {around("bos_token", "<s>")};
    parts.after = {around("eos_token", "</s>")};
    parts.pair = roberta_pair(parts.before[0], parts.after[0]);
  } else if (config.flag("add_bos_token").value_or(false)) {
    parts.before = {around("bos_token", "<|endoftext|>")};
  }
  config.fill_special_ids(parts);
  return parts;
}

}  // namespace treadle::text

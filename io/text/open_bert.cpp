#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/text/config.hpp>
#include <treadle/io/text/open.hpp>
#include <treadle/io/text/steps.hpp>
#include <treadle/io/text/word_piece.hpp>

#include <algorithm>

namespace treadle::text {

namespace {

/// Those whose tokenizers are BERT's with other names of special tokens.
constexpr std::array<std::string_view, 10> classes = {"",      "Bert",     "DistilBert", "Electra",     "MobileBert",
                                                      "MPNet", "LayoutLM", "ConvBert",   "SqueezeBert", "Lxmert"};

Vocabulary read_vocabulary(const std::filesystem::path& path) {
  const std::string text = io::read_text(path);
  require_utf8(text, path.string());
  Vocabulary vocabulary;
  std::int64_t line = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view token = std::string_view(text).substr(at, end - at);
    if (token.ends_with('\r')) token.remove_suffix(1);
    vocabulary.add(token, line, path.string() + ": line " + std::to_string(line + 1));
    at = end + 1;
  }
  if (vocabulary.empty()) throw io::Error(path.string() + ": is empty; a vocabulary has one token a line");
  return vocabulary;
}

}  // namespace

Parts open_bert(const std::filesystem::path& path) {
  const Config config = Config::beside(path);
  if (const std::string name = config.tokenizer_class();
      std::find(classes.begin(), classes.end(), name) == classes.end())
    throw io::Error(config.where() + ": the tokenizer_class '" + name +
                    "Tokenizer' is not supported with a vocab.txt; " + "BertTokenizer and its relatives are");
  if (!config.flag("do_basic_tokenize").value_or(true))
    throw io::Error(config.where() + ": do_basic_tokenize = false is not supported; true is");
  Parts parts;
  parts.kind = "WordPiece";
  parts.vocabulary = read_vocabulary(path);
  const auto special = [&](const char* role, const char* usual) {
    const std::string name = config.token(role).value_or(usual);
    const auto id = parts.vocabulary.find(name);
    if (!id) throw io::Error(path.string() + ": has no token '" + name + "'; a WordPiece vocabulary needs its " + role);
    add_token(parts, name, {.id = *id}, path.string());
    return *id;
  };
  const std::int32_t unknown = special("unk_token", "[UNK]");
  parts.before = {special("cls_token", "[CLS]")};
  parts.after = {special("sep_token", "[SEP]")};
  parts.pair = bert_pair(parts.before[0], parts.after[0]);
  const bool lower = config.flag("do_lower_case").value_or(true);
  parts.normalize.push_back(
      bert_normalizer({.handle_chinese_chars = config.flag("tokenize_chinese_chars").value_or(true),
                       .strip_accents = config.flag("strip_accents").value_or(lower),
                       .lowercase = lower}));
  parts.split.push_back(bert_pre_tokenizer());
  parts.model = word_piece({.unknown = unknown});
  parts.decode.push_back(decode_word_piece("##", true));
  config.add_tokens(parts);
  for (const char* name : {"[PAD]", "[MASK]"})
    if (const auto id = parts.vocabulary.find(name)) add_token(parts, name, {.id = *id}, path.string());
  config.fill_special_ids(parts);
  return parts;
}

}  // namespace treadle::text

#include <treadle/io/error.hpp>
#include <treadle/io/text/byte_level.hpp>
#include <treadle/io/text/config.hpp>
#include <treadle/io/text/json_steps.hpp>
#include <treadle/io/text/steps.hpp>

#include <algorithm>

namespace treadle::text {

using nlohmann::json;

namespace {

constexpr int most_nested = 16;

[[noreturn]] void refuse(const std::string& where, const std::string& type, const char* supported) {
  throw io::Error(where + ": '" + type + "' is not supported; " + supported + " are");
}

/// Calls f(step, its type, its place) for every step of a part, those of sequences one after the other.
template <typename F>
void each_step(const json& part, const char* list, const std::string& where, F&& f, int depth = 0) {
  if (part.is_null()) return;
  const std::string type = need_string(part, "type", where);
  if (type != "Sequence") return f(part, type, where);
  if (depth == most_nested)
    throw io::Error(where + ": sequences are nested more than " + std::to_string(most_nested) + " deep");
  const json& steps = need(part, list, where);
  if (!steps.is_array()) throw io::Error(where + ": '" + list + "' must be a list");
  std::size_t n = 0;
  for (const json& step : steps) each_step(step, list, where + "[" + std::to_string(n++) + "]", f, depth + 1);
}

/// A pattern that is text or a regular expression.
struct Pattern {
  std::string text;
  bool regex = false;
};

Pattern read_pattern(const json& step, const std::string& where) {
  const json& pattern = need(step, "pattern", where);
  if (pattern.is_string()) return {pattern.get<std::string>(), false};
  if (pattern.is_object() && pattern.contains("Regex")) return {need_string(pattern, "Regex", where), true};
  return {need_string(pattern, "String", where + ": pattern"), false};
}

Regex regex_of(const Pattern& p, const std::string& where) {
  return {p.regex ? p.text : quoted_pattern(p.text), where};
}

SplitBehavior read_behavior(const json& step, const char* otherwise, const std::string& where) {
  const std::string name = string_or(step, "behavior", otherwise, where);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  throw io::Error(where + ": behavior '" + name +
                  "' is not supported; Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous are");
}

/// The character that stands for a space, not empty.
std::string read_replacement(const json& step, const std::string& where) {
  const std::string text = string_or(step, "replacement", "▁", where);
  if (text.empty()) throw io::Error(where + ": 'replacement' is empty; a character is needed");
  return text;
}

PrependScheme read_scheme(const json& step, const std::string& where) {
  const bool add = flag_or(step, "add_prefix_space", true, where);  // of older files
  const std::string name = string_or(step, "prepend_scheme", add ? "always" : "never", where);
  if (name == "always") return PrependScheme::always;
  if (name == "first") return PrependScheme::first;
  if (name == "never") return PrependScheme::never;
  throw io::Error(where + ": prepend_scheme '" + name + "' is not supported; always, first and never are");
}

std::size_t read_count(const json& step, const char* key, const std::string& where) {
  const json& value = need(step, key, where);
  if (!value.is_number_unsigned())
    throw io::Error(where + ": '" + key + "' must be a whole number, but is " + value.dump());
  return value.get<std::size_t>();
}

std::int32_t known_token(const Parts& parts, const std::string& token, const std::string& where) {
  const auto id = parts.vocabulary.find(token);
  if (!id) throw io::Error(where + ": the token '" + token + "' is not in the vocabulary");
  return *id;
}

}  // namespace

void read_normalizer(const json& part, std::vector<NormalizeStep>& steps, const std::string& whole) {
  each_step(part, "normalizers", whole, [&](const json& step, const std::string& type, const std::string& where) {
    if (type == "BertNormalizer") {
      const bool lower = flag_or(step, "lowercase", true, where);
      steps.push_back(bert_normalizer({.clean_text = flag_or(step, "clean_text", true, where),
                                       .handle_chinese_chars = flag_or(step, "handle_chinese_chars", true, where),
                                       .strip_accents = flag_or(step, "strip_accents", lower, where),
                                       .lowercase = lower}));
    } else if (type == "Lowercase") {
      steps.push_back(lowercase());
    } else if (type == "NFC") {
      steps.push_back(unicode_form(Form::nfc));
    } else if (type == "NFD") {
      steps.push_back(unicode_form(Form::nfd));
    } else if (type == "NFKC") {
      steps.push_back(unicode_form(Form::nfkc));
    } else if (type == "NFKD") {
      steps.push_back(unicode_form(Form::nfkd));
    } else if (type == "StripAccents") {
      steps.push_back(strip_accents());
    } else if (type == "Strip") {
      steps.push_back(
          strip_white_space(flag_or(step, "strip_left", true, where), flag_or(step, "strip_right", true, where)));
    } else if (type == "Prepend") {
      steps.push_back(prepend(need_string(step, "prepend", where)));
    } else if (type == "Replace") {
      const Pattern pattern = read_pattern(step, where);
      std::string with = need_string(step, "content", where);
      steps.push_back(pattern.regex ? replace_all(regex_of(pattern, where), std::move(with))
                                    : replace_all(pattern.text, std::move(with)));
    } else if (type == "ByteLevel") {
      steps.emplace_back(bytes_to_characters);
    } else {
      refuse(where, type,
             "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, StripAccents, Strip, Prepend, Replace, ByteLevel and "
             "Sequence");
    }
  });
}

void read_pre_tokenizer(const json& part, std::vector<SplitStep>& steps, const std::string& whole) {
  each_step(part, "pretokenizers", whole, [&](const json& step, const std::string& type, const std::string& where) {
    if (type == "BertPreTokenizer") {
      steps.push_back(bert_pre_tokenizer());
    } else if (type == "ByteLevel") {
      steps.push_back(
          byte_level(flag_or(step, "add_prefix_space", true, where), flag_or(step, "use_regex", true, where)));
    } else if (type == "Split") {
      steps.push_back(split_at(regex_of(read_pattern(step, where), where), read_behavior(step, "", where),
                               flag_or(step, "invert", false, where)));
    } else if (type == "Whitespace") {
      steps.push_back(split_whitespace());
    } else if (type == "WhitespaceSplit") {
      steps.push_back(split_at(Regex("\\s", where), SplitBehavior::removed, false));
    } else if (type == "Metaspace") {
      steps.push_back(
          metaspace(read_replacement(step, where), read_scheme(step, where), flag_or(step, "split", true, where)));
    } else if (type == "Digits") {
      steps.push_back(split_digits(flag_or(step, "individual_digits", false, where)));
    } else if (type == "Punctuation") {
      steps.push_back(split_punctuation(read_behavior(step, "Isolated", where)));
    } else {
      refuse(where, type,
             "BertPreTokenizer, ByteLevel, Split, Whitespace, WhitespaceSplit, Metaspace, Digits, Punctuation and "
             "Sequence");
    }
  });
}

namespace {

/// The ids that a template's SpecialToken stands for.
std::vector<std::int32_t> special_ids(const json& item, const json& step, const Parts& parts,
                                      const std::string& where) {
  const std::string token = need_string(need(item, "SpecialToken", where), "id", where);
  const json& tokens = need(need(need(step, "special_tokens", where), token.c_str(), where), "tokens", where);
  const auto text = [](const json& t) { return t.is_string(); };
  if (!tokens.is_array() || !std::all_of(tokens.begin(), tokens.end(), text))
    throw io::Error(std::string(where).append(": 'tokens' of '").append(token).append("' must be strings"));
  std::vector<std::int32_t> ids;
  for (const json& t : tokens) ids.push_back(known_token(parts, t.get<std::string>(), where));
  return ids;
}

/// What a template says of two texts.
std::vector<PairPart> pair_of(const json& step, const Parts& parts, const std::string& where) {
  std::vector<PairPart> pair;
  if (!step.contains("pair") || step["pair"].is_null()) return pair;
  if (!step["pair"].is_array()) throw io::Error(where + ": 'pair' must be a list");
  int first = 0, second = 0;
  for (const json& item : step["pair"]) {
    const bool sequence = item.is_object() && item.contains("Sequence");
    const json& inner = need(item, sequence ? "Sequence" : "SpecialToken", where);
    const json& type = need(inner, "type_id", where);
    if (!type.is_number_unsigned() || type.get<std::uint64_t>() > 255)
      throw io::Error(where + ": a 'type_id' of 'pair' must be a number from 0 to 255");
    PairPart p{PairPart::Kind::token, 0, type.get<std::int32_t>()};
    if (!sequence) {
      for (const std::int32_t id : special_ids(item, step, parts, where)) {
        p.id = id;
        pair.push_back(p);
      }
      continue;
    }
    const std::string which = need_string(inner, "id", where);
    if (which != "A" && which != "B") throw io::Error(where + ": a 'Sequence' of 'pair' must be A or B");
    p.kind = which == "A" ? PairPart::Kind::first : PairPart::Kind::second;
    ++(which == "A" ? first : second);
    pair.push_back(p);
  }
  if (first != 1 || second != 1) throw io::Error(where + ": 'pair' must have each of its two texts once");
  return pair;
}

}  // namespace

void read_post_processor(const json& part, Parts& parts, const std::string& whole) {
  int said = 0;  // how many say something of pairs; one inside the other is not supported
  each_step(part, "processors", whole, [&](const json& step, const std::string& type, const std::string& where) {
    if (type == "ByteLevel") return;  // about offsets, which are not kept
    // One around the other: the last is the outermost.
    std::vector<std::int32_t> before, after;
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      const auto token = [&](const char* key) {
        const json& pair = need(step, key, where);  // [token, id]
        if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string())
          throw io::Error(where + ": '" + key + "' must be a token and its id");
        return known_token(parts, pair[0].get<std::string>(), where);
      };
      before.push_back(token("cls"));
      after.push_back(token("sep"));
      parts.pair = type == "BertProcessing" ? bert_pair(before[0], after[0]) : roberta_pair(before[0], after[0]);
      ++said;
    } else if (type == "TemplateProcessing") {
      bool behind = false;
      const json& single = need(step, "single", where);
      if (!single.is_array()) throw io::Error(where + ": 'single' must be a list");
      for (const json& item : single) {
        if (item.is_object() && item.contains("Sequence")) {
          if (behind) throw io::Error(where + ": 'single' has the text twice; once is supported");
          behind = true;
          continue;
        }
        std::vector<std::int32_t>& side = behind ? after : before;
        for (const std::int32_t id : special_ids(item, step, parts, where)) side.push_back(id);
      }
      if (!behind) throw io::Error(where + ": 'single' has no place for the text");
      parts.pair = pair_of(step, parts, where);
      ++said;
    } else {
      refuse(where, type, "BertProcessing, RobertaProcessing, TemplateProcessing, ByteLevel and Sequence");
    }
    parts.before.insert(parts.before.begin(), before.begin(), before.end());
    parts.after.insert(parts.after.end(), after.begin(), after.end());
  });
  if (said > 1) parts.pair.clear();
}

void read_decoder(const json& part, std::vector<DecodeStep>& steps, const std::string& whole) {
  each_step(part, "decoders", whole, [&](const json& step, const std::string& type, const std::string& where) {
    if (type == "WordPiece") {
      steps.push_back(decode_word_piece(string_or(step, "prefix", "##", where), flag_or(step, "cleanup", true, where)));
    } else if (type == "ByteLevel") {
      steps.push_back(decode_byte_level());
    } else if (type == "Metaspace") {
      steps.push_back(
          decode_metaspace(read_replacement(step, where), read_scheme(step, where) != PrependScheme::never));
    } else if (type == "BPEDecoder") {
      steps.push_back(decode_bpe_suffix(string_or(step, "suffix", "</w>", where)));
    } else if (type == "Replace") {
      const Pattern pattern = read_pattern(step, where);
      if (pattern.regex) throw io::Error(where + ": Replace by a regular expression is not supported; by a string is");
      steps.push_back(decode_replace(pattern.text, need_string(step, "content", where)));
    } else if (type == "ByteFallback") {
      steps.push_back(decode_byte_fallback());
    } else if (type == "Fuse") {
      steps.push_back(decode_fuse());
    } else if (type == "Strip") {
      std::string content = need_string(step, "content", where);
      if (content.empty()) throw io::Error(where + ": 'content' is empty; a character is needed");
      steps.push_back(
          decode_strip(std::move(content), read_count(step, "start", where), read_count(step, "stop", where)));
    } else {
      refuse(where, type,
             "WordPiece, ByteLevel, Metaspace, BPEDecoder, Replace, ByteFallback, Fuse, Strip and Sequence");
    }
  });
}

}  // namespace treadle::text

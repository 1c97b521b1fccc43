#include <treadle/io/text/byte_level.hpp>
#include <treadle/io/text/steps.hpp>

#include <charconv>

namespace treadle::text {

namespace {

using Tokens = std::vector<std::string>;

/// The byte that a token such as <0x41> stands for.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = token.data() + 5;
  const auto [at, error] = std::from_chars(token.data() + 3, end, value, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return static_cast<char>(value);
}

/// English text without the spaces that splitting put in.
std::string tidied(std::string text) {
  static const std::vector<NormalizeStep> steps = {
      replace_all(" .", "."),   replace_all(" ?", "?"),     replace_all(" !", "!"),    replace_all(" ,", ","),
      replace_all(" ' ", "'"),  replace_all(" n't", "n't"), replace_all(" 'm", "'m"),  replace_all(" do not", " don't"),
      replace_all(" 's", "'s"), replace_all(" 've", "'ve"), replace_all(" 're", "'re")};
  for (const NormalizeStep& step : steps) text = step(text);
  return text;
}

}  // namespace

DecodeStep decode_word_piece(std::string prefix, bool cleanup) {
  return [prefix = std::move(prefix), cleanup](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        if (tokens[i].starts_with(prefix))
          tokens[i].erase(0, prefix.size());
        else
          tokens[i].insert(0, " ");
      }
      if (cleanup) tokens[i] = tidied(std::move(tokens[i]));
    }
    return tokens;
  };
}

DecodeStep decode_byte_level() {
  return [](const Tokens& tokens) {
    std::string bytes;
    for (const std::string& t : tokens) bytes += characters_to_bytes(t);
    return Tokens{replace_invalid(bytes)};
  };
}

DecodeStep decode_metaspace(const std::string& replacement, bool drop_first) {
  return [spaces = replace_all(replacement, " "), nothing = replace_all(replacement, ""), drop_first](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = i == 0 && drop_first ? nothing(tokens[i]) : spaces(tokens[i]);
    return tokens;
  };
}

DecodeStep decode_bpe_suffix(const std::string& suffix) {
  return [space = replace_all(suffix, " "), nothing = replace_all(suffix, "")](Tokens tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = i + 1 == tokens.size() ? nothing(tokens[i]) : space(tokens[i]);
    return tokens;
  };
}

DecodeStep decode_replace(std::string what, std::string with) {
  return [step = replace_all(std::move(what), std::move(with))](Tokens tokens) {
    for (std::string& t : tokens) t = step(t);
    return tokens;
  };
}

DecodeStep decode_byte_fallback() {
  return [](const Tokens& tokens) {
    Tokens result;
    std::string bytes;
    const auto flush = [&] {
      bool valid = true;
      each_code_point(bytes, [&](char32_t c, std::string_view b) { valid = valid && (c != 0xFFFD || b == "\uFFFD"); });
      if (valid && !bytes.empty()) result.push_back(bytes);
      for (std::size_t i = 0; !valid && i < bytes.size(); ++i) result.emplace_back("\uFFFD");
      bytes.clear();
    };
    for (const std::string& t : tokens) {
      if (const auto byte = byte_of(t)) {
        bytes += *byte;
        continue;
      }
      flush();
      result.push_back(t);
    }
    flush();
    return result;
  };
}

DecodeStep decode_fuse() {
  return [](const Tokens& tokens) {
    std::string text;
    for (const std::string& t : tokens) text += t;
    return Tokens{text};
  };
}

DecodeStep decode_strip(std::string content, std::size_t start, std::size_t stop) {
  return [content = std::move(content), start, stop](Tokens tokens) {
    for (std::string& t : tokens) {
      for (std::size_t i = 0; i < start && t.starts_with(content); ++i) t.erase(0, content.size());
      for (std::size_t i = 0; i < stop && t.ends_with(content); ++i) t.erase(t.size() - content.size());
    }
    return tokens;
  };
}

}  // namespace treadle::text

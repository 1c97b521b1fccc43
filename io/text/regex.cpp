#include <treadle/io/error.hpp>
#include <treadle/io/text.hpp>
#include <treadle/io/text/regex.hpp>

#include <unicode/regex.h>
#include <unicode/utext.h>

namespace treadle::text {

struct Regex::Compiled {
  std::unique_ptr<icu::RegexPattern> pattern;
};

namespace {

using Text = std::unique_ptr<UText, decltype(&utext_close)>;

Text open_text(std::string_view utf8, UErrorCode& status) {
  return {utext_openUTF8(nullptr, utf8.data(), static_cast<std::int64_t>(utf8.size()), &status), &utext_close};
}

/// \s and \w as Oniguruma has them: ICU's \s lacks U+000B and U+0085, and its \w takes all of Alphabetic.
std::string translated(std::string_view pattern) {
  std::string result;
  bool in_set = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '[') in_set = true;
    if (c == ']') in_set = false;
    if (c != '\\' || i + 1 == pattern.size()) {
      result += c;
      continue;
    }
    const char escaped = pattern[++i];
    switch (escaped) {
      case 's': result += "\\p{White_Space}"; break;
      case 'S': result += "\\P{White_Space}"; break;
      case 'w': result += in_set ? "\\p{L}\\p{M}\\p{Nd}\\p{Pc}" : "[\\p{L}\\p{M}\\p{Nd}\\p{Pc}]"; break;
      case 'W':
        if (in_set)
          result += "\\W";
        else
          result += "[^\\p{L}\\p{M}\\p{Nd}\\p{Pc}]";
        break;
      default: result += {c, escaped}; break;
    }
  }
  return result;
}

}  // namespace

Regex::Regex(std::string_view pattern, std::string_view where) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError place{};
  auto compiled = std::make_shared<Compiled>();
  compiled->pattern.reset(
      icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(translated(pattern)), 0, place, status));
  if (U_FAILURE(status) || compiled->pattern == nullptr)
    throw io::Error(std::string(where) + ": the pattern " + io::in_quotes(pattern) +
                    " is no regular expression that ICU understands: " + u_errorName(status) + " near character " +
                    std::to_string(place.offset));
  compiled_ = std::move(compiled);
}

std::vector<std::pair<std::size_t, std::size_t>> Regex::matches(std::string_view utf8) const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  UErrorCode status = U_ZERO_ERROR;
  const Text text = open_text(utf8, status);
  const std::unique_ptr<icu::RegexMatcher> matcher(compiled_->pattern->matcher(status));
  if (U_SUCCESS(status)) {
    matcher->reset(text.get());
    while (matcher->find(status)) {
      const auto start = static_cast<std::size_t>(matcher->start64(status));
      const auto end = static_cast<std::size_t>(matcher->end64(status));
      if (end > start) found.emplace_back(start, end);
    }
  }
  if (U_FAILURE(status))
    throw io::Error(std::string("ICU could not split a text of ") + std::to_string(utf8.size()) +
                    " bytes: " + u_errorName(status) + "; pass it in parts, such as lines");
  return found;
}

std::string quoted_pattern(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0x80) == 0 &&
        std::string_view("\\^$.|?*+()[]{}-&#/ ").find(c) != std::string_view::npos)
      quoted += '\\';
    quoted += c;
  }
  return quoted;
}

}  // namespace treadle::text

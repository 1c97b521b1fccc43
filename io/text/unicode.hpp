#pragma once
// UTF-8, and the Unicode properties that tokenizers ask for. Texts are UTF-8 everywhere; ICU knows the properties.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace treadle::text {

struct CodePoint {
  char32_t value;      ///< U+FFFD where invalid.
  std::size_t length;  ///< Bytes; where invalid, those of the longest start of a character, at least 1.
  bool valid;
};

/// The code point that starts at byte `at` < size.
CodePoint code_point_at(std::string_view utf8, std::size_t at);

/// Adds the code point's UTF-8.
void append(std::string& utf8, char32_t c);

/// Throws io::Error with the first bad byte and its offset; `what` starts the sentence: "the text".
void require_utf8(std::string_view text, std::string_view what);

/// Every sequence of bytes that is no character becomes U+FFFD, one for each longest start of a character.
std::string replace_invalid(std::string_view bytes);

std::size_t count_code_points(std::string_view utf8);

/// Calls f(code point, its bytes) on valid UTF-8.
template <typename F>
void each_code_point(std::string_view utf8, F&& f) {
  for (std::size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    f(c.value, utf8.substr(at, c.length));
    at += c.length;
  }
}

/// The property White_Space.
bool is_white_space(char32_t c);
/// Any of the categories N*.
bool is_numeric(char32_t c);
/// Any of the categories M*: what StripAccents removes.
bool is_mark(char32_t c);

// BERT's classes. Published tokenizers decide with the tables of Unicode 8, so that a character that came later is in
// none.
bool is_bert_control(char32_t c);
bool is_bert_punctuation(char32_t c);
bool is_bert_accent(char32_t c);
bool is_cjk(char32_t c);

/// Lower case of every code point alone: without the final sigma.
std::string lower_case(std::string_view utf8);

enum class Form { nfc, nfd, nfkc, nfkd };
std::string normalize(std::string_view utf8, Form form);

}  // namespace treadle::text

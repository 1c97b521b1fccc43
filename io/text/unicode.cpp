#include <treadle/io/error.hpp>
#include <treadle/io/text/unicode.hpp>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include <cstdio>

namespace treadle::text {

namespace {

bool is_of(char32_t c, std::uint32_t categories) { return (U_GET_GC_MASK(static_cast<UChar32>(c)) & categories) != 0; }

/// Whether Unicode had this character in the given version.
bool older_than(char32_t c, int version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] != 0 && age[0] <= version;
}

constexpr int bert_unicode = 8, marks_unicode = 9;

}  // namespace

CodePoint code_point_at(std::string_view utf8, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(utf8[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return {first, 1, true};
  std::size_t length = 0;
  unsigned least = 0x80, most = 0xBF;  // of the second byte: no overlong forms, no surrogates, nothing above 10FFFF
  char32_t value = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    value = first & 0x1F;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    value = first & 0x0F;
    if (first == 0xE0) least = 0xA0;
    if (first == 0xED) most = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    value = first & 0x07;
    if (first == 0xF0) least = 0x90;
    if (first == 0xF4) most = 0x8F;
  } else {
    return {U'\uFFFD', 1, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= utf8.size() || byte(at + i) < least || byte(at + i) > most) return {U'\uFFFD', i, false};
    value = value << 6 | (byte(at + i) & 0x3F);
    least = 0x80;
    most = 0xBF;
  }
  return {value, length, true};
}

void append(std::string& utf8, char32_t c) {
  const auto put = [&](char32_t byte) { utf8.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

void require_utf8(std::string_view text, std::string_view what) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!c.valid) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "0x%02x", static_cast<unsigned char>(text[at]));
      throw io::Error(std::string(what) + " is not UTF-8: byte " + byte + " at offset " + std::to_string(at) +
                      " starts no character; convert it to UTF-8 first");
    }
    at += c.length;
  }
}

std::string replace_invalid(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  each_code_point(bytes, [&](char32_t c, std::string_view) { append(text, c); });
  return text;
}

std::size_t count_code_points(std::string_view utf8) {
  std::size_t count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

bool is_white_space(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }
bool is_numeric(char32_t c) { return is_of(c, U_GC_N_MASK); }
bool is_mark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // letters since Unicode 12
  return is_of(c, U_GC_M_MASK) && older_than(c, marks_unicode);
}

bool is_bert_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return is_of(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && older_than(c, bert_unicode);
}

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7F && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  if (c == 0x166D || c == 0x111C9) return true;  // other categories since Unicode 12 and 9
  return is_of(c, U_GC_P_MASK) && older_than(c, bert_unicode);
}

bool is_bert_accent(char32_t c) {
  if (c == 0x1734) return true;                  // another category since Unicode 14
  if (c == 0x1885 || c == 0x1886) return false;  // letters until Unicode 9
  return is_of(c, U_GC_MN_MASK) && c != 0x111C9 && older_than(c, bert_unicode);
}

bool is_cjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string lower_case(std::string_view utf8) {
  std::string lower;
  lower.reserve(utf8.size());
  each_code_point(utf8, [&](char32_t c, std::string_view) {
    if (c == 0x130)  // İ: the only one whose lower case has two code points
      lower += "i\u0307";
    else
      append(lower, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  });
  return lower;
}

std::string normalize(std::string_view utf8, Form form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = nullptr;
  switch (form) {
    case Form::nfc: normalizer = icu::Normalizer2::getNFCInstance(status); break;
    case Form::nfd: normalizer = icu::Normalizer2::getNFDInstance(status); break;
    case Form::nfkc: normalizer = icu::Normalizer2::getNFKCInstance(status); break;
    case Form::nfkd: normalizer = icu::Normalizer2::getNFKDInstance(status); break;
  }
  std::string result;
  if (normalizer != nullptr && U_SUCCESS(status)) {
    icu::StringByteSink<std::string> sink(&result, static_cast<std::int32_t>(utf8.size()));
    normalizer->normalizeUTF8(0, icu::StringPiece(utf8.data(), static_cast<std::int32_t>(utf8.size())), sink, nullptr,
                              status);
  }
  if (normalizer == nullptr || U_FAILURE(status))
    throw io::Error(std::string("ICU could not normalise a text: ") + u_errorName(status));
  return result;
}

}  // namespace treadle::text

#include <treadle/io/text.hpp>

#include <cstdint>

namespace treadle::io {

namespace {

/// A code point and how many bytes it takes; 0 where the text does not go on with well-formed UTF-8.
struct Decoded {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  std::uint32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const std::uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

/// What would change the line that an error stands in.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::size_t find_bad_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = decode(text.substr(at)).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "'";
  for (std::size_t at = 0; at < text.size();) {
    const Decoded d = decode(text.substr(at));
    const std::size_t bytes = d.bytes == 0 ? 1 : d.bytes;
    if (at + bytes > longest) return result + "…'";
    if (d.bytes == 0 || is_control(d.code)) {
      for (std::size_t i = at; i < at + bytes; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        result += "\\x";
        result += digits[byte >> 4];
        result += digits[byte & 15];
      }
    } else {
      if (text[at] == '\'' || text[at] == '\\') result += '\\';
      result += text.substr(at, bytes);
    }
    at += bytes;
  }
  return result + "'";
}

}  // namespace treadle::io

#include <treadle/io/text/byte_level.hpp>
#include <treadle/io/text/unicode.hpp>

#include <array>

namespace treadle::text {

namespace {

struct Table {
  std::array<char32_t, 256> character{};
  std::array<int, 0x144> byte{};  // −1: the character stands for no byte

  Table() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      character[b] = printable ? b : next++;
      byte[character[b]] = static_cast<int>(b);
    }
  }
};

const Table& table() {
  static const Table t;
  return t;
}

}  // namespace

std::string bytes_to_characters(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char b : bytes) append(text, table().character[static_cast<unsigned char>(b)]);
  return text;
}

std::string characters_to_bytes(std::string_view token) {
  std::string bytes;
  bool all = true;
  each_code_point(token, [&](char32_t c, std::string_view) {
    const int byte = c < table().byte.size() ? table().byte[c] : -1;
    all = all && byte >= 0;
    bytes += static_cast<char>(byte);
  });
  return all ? bytes : std::string(token);
}

}  // namespace treadle::text

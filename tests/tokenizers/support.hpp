#pragma once
// Tokenizers in folders of the test's own, and the sentences that refusals give.

#include <treadle/io/error.hpp>
#include <treadle/io/text/tokenizer.hpp>

#include <boost/test/unit_test.hpp>

#include <folder.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace treadle::test {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

inline fs::path data(const std::string& name) { return fs::path(TREADLE_TEST_DATA) / "tokenizers" / name; }

inline nlohmann::json read_json(const fs::path& path) { return nlohmann::json::parse(read(path)); }

/// A folder that a tokenizer is written to.
struct TokenizerFolder : Folder {
  using Folder::write;
  /// tokenizer.json alone.
  fs::path write(const nlohmann::json& tokenizer) const { return write("tokenizer.json", tokenizer.dump()); }
};

/// f() throws one sentence that holds `part`.
template <typename F>
void check_refused(F&& f, const std::string& part) {
  BOOST_CHECK_EXCEPTION(f(), io::Error, [&](const io::Error& e) {
    const std::string text = e.what();
    const bool right = text.find(part) != std::string::npos && text.find('\n') == std::string::npos;
    BOOST_CHECK_MESSAGE(right, "wanted '" << part << "', got '" << text << "'");
    return right;
  });
}
inline void check_not_opened(const fs::path& path, const std::string& part) {
  check_refused([&] { text::Tokenizer::open(path); }, part);
}

/// Valid UTF-8 of any planes.
inline std::string random_text(std::mt19937& random, std::size_t length) {
  const auto below = [&](std::uint32_t n) { return static_cast<char32_t>(random() % n); };
  std::string text;
  for (std::size_t i = 0; i < length; ++i) {
    char32_t c = 0;
    switch (random() % 6) {
      case 0: c = below(0x80); break;
      case 1: c = U" \t\n\r\u000b\u0085\u00a0\u2003\u3000\u200d\ufe0f"[below(11)]; break;
      case 2: c = 0x300 + below(0x70); break;
      case 3: c = below(0x800); break;
      case 4: c = below(0xD800); break;
      default: c = 0xE000 + below(0x110000 - 0xE000); break;
    }
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xC0 | c >> 6);
    } else if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    }
    if (c >= 0x80) text += static_cast<char>(0x80 | (c & 0x3F));
  }
  return text;
}

}  // namespace treadle::test

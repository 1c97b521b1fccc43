#include <treadle/io/text/added_tokens.hpp>
#include <treadle/io/text/unicode.hpp>

#include <unicode/uchar.h>

#include <algorithm>
#include <functional>

namespace treadle::text {

namespace {

/// The code point that ends before byte `at` > 0.
CodePoint code_point_before(std::string_view text, std::size_t at) {
  std::size_t start = at - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return code_point_at(text, start);
}

bool is_word(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) || c == 0x200C || c == 0x200D ||
         (U_GET_GC_MASK(static_cast<UChar32>(c)) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

}  // namespace

void TokenFinder::add(const std::string& content, const AddedToken& token) {
  if (content.empty() || !tokens_.emplace(content, token).second) return;
  starts_[static_cast<unsigned char>(content.front())] = true;
  const auto at = std::lower_bound(lengths_.begin(), lengths_.end(), content.size(), std::greater<>());
  if (at == lengths_.end() || *at != content.size()) lengths_.insert(at, content.size());
}

const AddedToken* TokenFinder::match(std::string_view text, std::size_t at, std::size_t& length) const {
  if (!starts_[static_cast<unsigned char>(text[at])]) return nullptr;
  for (const std::size_t n : lengths_) {
    if (n > text.size() - at) continue;
    const auto found = tokens_.find(text.substr(at, n));
    if (found == tokens_.end()) continue;
    length = n;
    return &found->second;
  }
  return nullptr;
}

void TokenFinder::split(std::string_view text, std::vector<Segment>& segments) const {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    const AddedToken* token = match(text, at, length);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t start = at, end = at + length;
    at = end;
    if (token->single_word && ((start > 0 && is_word(code_point_before(text, start).value)) ||
                               (end < text.size() && is_word(code_point_at(text, end).value))))
      continue;
    while (token->strip_left && start > done && is_white_space(code_point_before(text, start).value))
      start -= code_point_before(text, start).length;
    while (token->strip_right && end < text.size() && is_white_space(code_point_at(text, end).value))
      end += code_point_at(text, end).length;
    if (start > done) segments.push_back({text.substr(done, start - done), std::nullopt});
    segments.push_back({text.substr(start, end - start), token->id});
    at = done = end;
  }
  if (done < text.size()) segments.push_back({text.substr(done), std::nullopt});
}

}  // namespace treadle::text

#pragma once
// Tokens that are found in the text before anything else is done to it: [MASK], <|endoftext|>.

#include <treadle/io/text/vocabulary.hpp>

#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace treadle::text {

struct AddedToken {
  std::int32_t id = 0;
  bool special = true;       ///< decode leaves it out.
  bool normalized = false;   ///< Looked for in the normalised text.
  bool single_word = false;  ///< Only where no letter or digit stands beside it.
  bool strip_left = false;   ///< Takes the white space before it.
  bool strip_right = false;  ///< Takes the white space behind it.
};

/// A part of a text: an added token, or what is between two of them.
struct Segment {
  std::string_view text;
  std::optional<std::int32_t> id;
};

/// Tokens that are looked for in one kind of text. The leftmost match counts, and of those the longest.
class TokenFinder {
 public:
  void add(const std::string& content, const AddedToken& token);
  /// Adds the segments of the text, none of them empty.
  void split(std::string_view text, std::vector<Segment>& segments) const;

 private:
  const AddedToken* match(std::string_view text, std::size_t at, std::size_t& length) const;
  StringMap<AddedToken> tokens_;
  std::vector<std::size_t> lengths_;  // that occur, the longest first
  std::array<bool, 256> starts_{};    // first bytes
};

struct AddedTokens {
  TokenFinder raw, normalized;
  std::unordered_set<std::int32_t> special;
};

}  // namespace treadle::text

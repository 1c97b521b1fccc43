#pragma once
// Regular expressions on UTF-8, through ICU.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle::text {

class Regex {
 public:
  /// A pattern as tokenizer files write it (Oniguruma's syntax, with its white space and words). Throws io::Error with
  /// `where` and the place in the pattern.
  Regex(std::string_view pattern, std::string_view where);

  /// First and last byte + 1 of every match, none of them empty. Throws io::Error where matching needs too much memory.
  std::vector<std::pair<std::size_t, std::size_t>> matches(std::string_view utf8) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

/// The text as a pattern.
std::string quoted_pattern(std::string_view text);

}  // namespace treadle::text

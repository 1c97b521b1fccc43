#pragma once
// Tokens and their ids.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace treadle::text {

/// A map from strings that is asked with views.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
template <typename T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

class Vocabulary {
 public:
  /// More than any published vocabulary has, and no memory to speak of.
  static constexpr std::int64_t most_ids = 1 << 24;

  /// Throws io::Error: the token or the id is there already, the id is negative or too large. `where` names the place:
  /// "vocab.txt: line 7".
  void add(std::string_view token, std::int64_t id, std::string_view where);

  std::optional<std::int32_t> find(std::string_view token) const;
  /// The token, or nothing in a gap or outside.
  std::optional<std::string_view> token(std::int64_t id) const;
  /// The largest id plus 1.
  std::int32_t size() const { return static_cast<std::int32_t>(tokens_.size()); }
  bool empty() const { return ids_.empty(); }

 private:
  StringMap<std::int32_t> ids_;
  std::vector<std::optional<std::string_view>> tokens_;  // into ids_, whose nodes stay where they are
};

}  // namespace treadle::text

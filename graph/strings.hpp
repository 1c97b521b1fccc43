#pragma once
// Interned strings as plain data: names live here, nodes hold indices.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace treadle {

struct StringEntry {
  std::int32_t first = 0, size = 0;
};

struct StringsView {
  std::span<const char> chars;
  std::span<const StringEntry> entries;
  constexpr std::string_view operator[](std::int32_t id) const {
    if (id < 0) return {};
    const StringEntry e = entries[id];
    return {chars.data() + e.first, static_cast<std::size_t>(e.size)};
  }
};

struct Strings {
  std::vector<char> chars;
  std::vector<StringEntry> entries;

  constexpr StringsView view() const { return {{chars.data(), chars.size()}, {entries.data(), entries.size()}}; }
  constexpr std::string_view operator[](std::int32_t id) const {
    if (id < 0) return {};
    const StringEntry& e = entries[static_cast<std::size_t>(id)];
    return {chars.data() + e.first, static_cast<std::size_t>(e.size)};
  }
  constexpr std::int32_t intern(std::string_view text) {
    // Plain loops over pointers: compilers evaluate them many times faster than calls of small functions.
    const auto count = static_cast<std::int32_t>(entries.size()), size = static_cast<std::int32_t>(text.size());
    const StringEntry* e = entries.data();
    const char *pool = chars.data(), *wanted = text.data();
    for (std::int32_t i = 0; i < count; ++i) {
      if (e[i].size != size) continue;
      const char* known = pool + e[i].first;
      std::int32_t same = size;  // from the back: names differ there
      while (same > 0 && known[same - 1] == wanted[same - 1]) --same;
      if (same == 0) return i;
    }
    entries.push_back({static_cast<std::int32_t>(chars.size()), size});
    chars.insert(chars.end(), text.begin(), text.end());
    return count;
  }
  constexpr bool operator==(const Strings& o) const {
    if (chars != o.chars || entries.size() != o.entries.size()) return false;
    return true;
  }
};

}  // namespace treadle

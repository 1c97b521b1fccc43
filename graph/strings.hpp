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

  constexpr StringsView view() const { return {chars, entries}; }
  constexpr std::string_view operator[](std::int32_t id) const { return view()[id]; }
  constexpr std::int32_t intern(std::string_view text) {
    for (std::size_t i = 0; i < entries.size(); ++i)
      if ((*this)[static_cast<std::int32_t>(i)] == text) return static_cast<std::int32_t>(i);
    entries.push_back({static_cast<std::int32_t>(chars.size()), static_cast<std::int32_t>(text.size())});
    for (char c : text) chars.push_back(c);
    return static_cast<std::int32_t>(entries.size()) - 1;
  }
  constexpr bool operator==(const Strings& o) const {
    if (chars != o.chars || entries.size() != o.entries.size()) return false;
    return true;
  }
};

}  // namespace treadle

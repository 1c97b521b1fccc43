#include <treadle/models/names.hpp>

namespace treadle::models {

bool matches(std::string_view text, std::string_view pattern, std::vector<std::string_view>* taken) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  // A star takes as little as lets the rest match.
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const std::size_t before = taken != nullptr ? taken->size() : 0;
    if (taken != nullptr) taken->push_back(text.substr(0, length));
    if (matches(text.substr(length), pattern, taken)) return true;
    if (taken != nullptr) taken->resize(before);
  }
  return false;
}

Published published_name(std::string_view ours, const std::vector<NameRule>& rules) {
  for (const NameRule& r : rules) {
    std::vector<std::string_view> taken;
    if (!matches(ours, r.ours, &taken)) continue;
    Published p{{}, r.transposed, r.part, r.parts};
    std::size_t next = 0;
    for (const char c : r.published) {
      if (c == '*' && next < taken.size())
        p.name += taken[next++];
      else
        p.name += c;
    }
    return p;
  }
  return {std::string(ours), false, 0, 1};
}

}  // namespace treadle::models

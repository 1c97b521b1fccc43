#include <treadle/io/nearest.hpp>

#include <algorithm>
#include <vector>

namespace treadle::io {

namespace {
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1u : 0u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}
}  // namespace

std::string nearest(std::string_view text, std::span<const std::string> words) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& w : words) {
    const std::size_t d = edit_distance(text, w);
    if (d < least) {
      least = d;
      best = w;
    }
  }
  return best;
}

}  // namespace treadle::io

#include "lines.hpp"

#include <treadle/io/file.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>

namespace treadle::cli {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

std::string read_whole(const std::string& file) {
  if (file != "-") return io::read_text(file);
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

}  // namespace treadle::cli

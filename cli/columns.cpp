#include "columns.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace treadle::cli {

std::string count_text(double n) {
  const char* const units[] = {"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  for (; n >= 1000 && unit + 1 < std::size(units); ++unit) n /= 1000;
  return unit == 0 ? fmt::format("{:.0f}", n)
                   : fmt::format("{:.{}f}{}", n,
                                 n < 9.995   ? 2
                                 : n < 99.95 ? 1
                                             : 0,
                                 units[unit]);
}

std::string left(const std::string& s, std::size_t width) {
  const auto size = static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
  return s + std::string(width > size ? width - size : 0, ' ');
}
std::string right(const std::string& s, std::size_t width) {
  const std::string padded = left(s, width);
  return padded.substr(s.size()) + s;
}

}  // namespace treadle::cli

#include "arguments.hpp"

#include "machine.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/kernel.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace treadle::cli {

std::string join(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words.begin(), words.end(), separator));
}

namespace {
std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}
}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t least, std::int64_t most) {
  const std::string range = most == std::numeric_limits<std::int64_t>::max()
                                ? fmt::format("{} or more", least)
                                : fmt::format("from {} to {}", least, most);
  const std::string_view digits = trim(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || end != digits.data() + digits.size() || error == std::errc::invalid_argument)
    throw Error(fmt::format("{} is '{}': write a whole number {}", what, text, range));
  if (error == std::errc::result_out_of_range || value < least || value > most)
    throw Error(fmt::format("{} is {}: it must be {}", what, text, range));
  return value;
}

std::vector<std::int64_t> parse_lengths(std::string_view text) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  constexpr std::string_view what = "--lengths";
  std::vector<std::int64_t> lengths;
  for (const std::string& part : split(text)) {
    if (part.empty())
      throw Error(
          fmt::format("--lengths is '{}': write a doubling range such as 256:16384 or a list such as 256,1000", text));
    const auto ends = split(part, ':');
    if (ends.size() > 2) throw Error(fmt::format("--lengths has '{}': a range has two ends, such as 256:16384", part));
    const std::int64_t first = parse_integer(ends[0], what, 1, most);
    const std::int64_t last = ends.size() == 2 ? parse_integer(ends[1], what, 1, most) : first;
    if (last < first)
      throw Error(
          fmt::format("--lengths has '{}': the range must not end before it begins, such as {}:{}", part, last, first));
    for (std::int64_t n = first; n <= last; n *= 2) lengths.push_back(n);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

std::string parse_isa(std::string_view text) {
  if (text.empty()) return "";
  std::vector<std::string> usable;
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::IsaInfo& isa = kernel::isa_list()[i];
    if (isa.compiled && isa.supported) usable.emplace_back(isa.name);
    if (text != isa.name) continue;
    if (!isa.compiled) throw Error(fmt::format("ISA '{}' is not compiled into this binary", text));
    if (!isa.supported) throw Error(fmt::format("this CPU does not have ISA '{}': see `treadle backends`", text));
  }
  if (std::find(usable.begin(), usable.end(), text) == usable.end())
    throw Error(fmt::format("unknown ISA '{}': this CPU has {}", text, join(usable)));
  // find_table also honours the cap that TREADLE_ISA sets.
  if (kernel::find_table(std::string(text).c_str()) == nullptr)
    throw Error(fmt::format("ISA '{}' is above the cap that the environment variable TREADLE_ISA sets", text));
  return std::string(text);
}

std::string parse_backend(std::string_view text) { return std::string(find_backend(text).name); }

std::string bytes_text(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 6) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

void require_memory(double bytes, std::string_view what, std::string_view advice) {
  const double available = memory_available();
  if (available > 0 && bytes > available)
    throw Error(fmt::format("{} needs {} of memory but {} are available: {}", what, bytes_text(bytes),
                            bytes_text(available), advice));
}

}  // namespace treadle::cli

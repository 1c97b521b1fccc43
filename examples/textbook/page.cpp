#include "page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace textbook {
namespace {

std::string number_text(double x, int decimals) {
  if (std::abs(x) < 0.5 * std::pow(10.0, -decimals)) x = 0;  // no "-0.0000"
  return fmt::format("{:.{}f}", x, decimals);
}

int decimals_of(std::string_view printed) {
  const std::size_t point = printed.find('.');
  return point == std::string_view::npos ? 0 : static_cast<int>(printed.size() - point - 1);
}

/// Columns on a terminal: code points, none of ours is wide.
std::size_t width_of(std::string_view s) {
  return static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

std::string padded(const std::string& s, std::size_t width) {
  return s + std::string(width - std::min(width, width_of(s)), ' ');
}

}  // namespace

std::string indented(std::string_view text) {
  std::string s = "  ";
  for (const char c : text) s += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return s;
}

void Page::as_printed(std::string what, std::span<const float> got, std::string_view printed) {
  std::istringstream words{std::string(printed)};
  std::string word, shown;
  std::size_t i = 0;
  bool agrees = true;
  for (; words >> word; ++i) {
    if (i == got.size()) break;
    const int decimals = decimals_of(word);
    agrees = agrees && std::abs(static_cast<double>(got[i]) - std::stod(word)) <= 0.5 * std::pow(10.0, -decimals);
    shown += (i == 0 ? "" : " ") + number_text(got[i], decimals + 1);
  }
  agrees = agrees && i == got.size() && !words;
  lines_.push_back({std::move(what), shown, std::string(printed), "½ digit", agrees});
}

void Page::close(std::string what, double got, double expected, double tolerance, int decimals) {
  lines_.push_back({std::move(what), number_text(got, decimals), number_text(expected, decimals),
                    fmt::format("{:g}", tolerance), std::abs(got - expected) <= tolerance});
}

void Page::rounding(std::string what, double got, double limit) {
  const bool agrees = got >= 0 && got <= limit;
  lines_.push_back({std::move(what), agrees ? fmt::format("below {:g}", limit) : fmt::format("{:g}", got), "0",
                    fmt::format("{:g}", limit), agrees});
}

void Page::at_most(std::string what, double got, double limit, int decimals) {
  lines_.push_back({std::move(what), number_text(got, decimals), fmt::format("at most {:g}", limit), "", got <= limit});
}

void Page::more_than(std::string what, double got, double limit, int decimals) {
  lines_.push_back(
      {std::move(what), number_text(got, decimals), fmt::format("more than {:g}", limit), "", got > limit});
}

void Page::count(std::string what, std::int64_t got, std::int64_t expected) {
  lines_.push_back({std::move(what), fmt::format("{}", got), fmt::format("{}", expected), "exactly", got == expected});
}

int Page::agreeing() const {
  return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), [](const Line& l) { return l.agrees; }));
}

std::string Page::text() const {
  const Line head{"", "computed", "expected", "within", true};
  std::size_t what = 0, got = width_of(head.got), expected = width_of(head.expected), within = width_of(head.within);
  for (const Line& l : lines_) {
    what = std::max(what, width_of(l.what));
    got = std::max(got, width_of(l.got));
    expected = std::max(expected, width_of(l.expected));
    within = std::max(within, width_of(l.within));
  }
  const auto row = [&](const Line& l, const std::string& verdict) {
    std::string s = "  " + padded(l.what, what) + "  " + padded(l.got, got) + "  " + padded(l.expected, expected) +
                    "  " + padded(l.within, within) + "  " + verdict;
    s.erase(s.find_last_not_of(' ') + 1);
    return s + "\n";
  };
  std::string s;
  for (const std::string& f : figures_) s += f + "\n";
  s += row(head, "");
  for (const Line& l : lines_) s += row(l, l.agrees ? "agrees" : "DIFFERS");
  for (const std::string& n : notes_) s += indented("Note: " + n) + "\n";
  return s;
}

}  // namespace textbook

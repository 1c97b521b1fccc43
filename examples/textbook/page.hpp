#pragma once
// What a chapter writes: lines of what was computed beside what the text says, figures above them and notes below.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace textbook {

/// One line of a chapter's table.
struct Line {
  std::string what, got, expected, within;
  bool agrees = false;
};

class Page {
 public:
  /// `printed` is what the text prints, such as "0.471 0.264 0.264": each number must round to what stands there, digit
  /// by digit.
  void as_printed(std::string what, std::span<const float> got, std::string_view printed);
  /// |got − expected| <= tolerance, shown with so many decimals.
  void close(std::string what, double got, double expected, double tolerance, int decimals);
  /// A difference that should be nothing but rounding: 0 <= got <= limit. Only "below limit" is shown, since the
  /// digits of rounding errors differ from one ISA to the next.
  void rounding(std::string what, double got, double limit);
  void at_most(std::string what, double got, double limit, int decimals);
  void more_than(std::string what, double got, double limit, int decimals);
  void count(std::string what, std::int64_t got, std::int64_t expected);

  /// A table or a drawing that stands above the lines.
  void figure(std::string text) { figures_.push_back(std::move(text)); }
  /// A paragraph; its lines are broken by the caller.
  void note(std::string text) { notes_.push_back(std::move(text)); }

  int lines() const { return static_cast<int>(lines_.size()); }
  int agreeing() const;
  /// Everything as text, lines aligned.
  std::string text() const;

 private:
  std::vector<Line> lines_;
  std::vector<std::string> figures_, notes_;
};

/// Every line two columns to the right.
std::string indented(std::string_view text);

}  // namespace textbook

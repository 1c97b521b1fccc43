#pragma once
// Values of options: parsed with a sentence that says what would be right. All throw Error, which ends the program
// with 2.

#include <treadle/io/nearest.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

/// "a, b, c"
std::string join(std::span<const std::string> words, std::string_view separator = ", ");
using io::nearest;

/// Split at commas, blanks around the parts dropped; empty parts are kept.
std::vector<std::string> split(std::string_view text, char separator = ',');

/// A whole number in [least, most]; `what` names the option in the sentence.
std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t least, std::int64_t most);

/// "256:65536" doubles from the first to the last; "256,1000,4096" is the list itself.
std::vector<std::int64_t> parse_lengths(std::string_view text);

/// The name of an ISA that this CPU can run; "" stays "" (the best one).
std::string parse_isa(std::string_view text);
/// A name of a backend.
std::string parse_backend(std::string_view text);

/// "3.2 GiB"
std::string bytes_text(double bytes);

/// Throws Error if `bytes` is more than the machine has free now.
void require_memory(double bytes, std::string_view what, std::string_view advice);

}  // namespace treadle::cli

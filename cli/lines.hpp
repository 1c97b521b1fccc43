#pragma once
// Text files line by line.

#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

/// The lines of a text, without their ends (\n or \r\n).
std::vector<std::string_view> lines_of(std::string_view text);

/// A whole file; - is standard input. Throws Error.
std::string read_whole(const std::string& file);

}  // namespace treadle::cli

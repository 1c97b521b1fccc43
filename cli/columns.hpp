#pragma once
// Numbers and columns of tables on a screen.

#include <string>

namespace treadle::cli {

/// "1.23 M"
std::string count_text(double n);

/// Padded by characters, not bytes.
std::string left(const std::string& s, std::size_t width);
std::string right(const std::string& s, std::size_t width);

}  // namespace treadle::cli

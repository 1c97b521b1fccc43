#pragma once
// Text that comes from files: whether it is UTF-8, and how an error shows it.

#include <cstddef>
#include <string>
#include <string_view>

namespace treadle::io {

/// Place of the first byte that is no part of well-formed UTF-8 (Unicode 16, table 3-7: no overlong forms, no
/// surrogates, nothing beyond U+10FFFF), or npos where all of the text is.
std::size_t find_bad_utf8(std::string_view text);

/// 'text', fit for one line of an error: control characters, marks that change the direction of text and bytes that are
/// no UTF-8 as \x1b, quotes and backslashes behind a backslash, and no more than the first 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace treadle::io

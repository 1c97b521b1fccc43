#pragma once
// "did you mean …?"

#include <span>
#include <string>
#include <string_view>

namespace treadle::io {

/// The word most like `text` by edit distance, or "" if none is close.
std::string nearest(std::string_view text, std::span<const std::string> words);

}  // namespace treadle::io

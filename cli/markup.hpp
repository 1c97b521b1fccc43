#pragma once
// Text inside XML and HTML.

#include <string>
#include <string_view>

namespace treadle::cli {

/// With entities for what means something in markup; control characters, which XML cannot hold, and bytes that are no
/// UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

}  // namespace treadle::cli

#pragma once
// Files read and replaced as a whole.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

namespace treadle::io {

/// Size of a regular file. Throws Error: does not exist, may not be read, is a folder.
std::int64_t size_of_file(const std::filesystem::path& path);

/// The whole text. Throws Error.
std::string read_text(const std::filesystem::path& path);

/// Calls `write` on a new file beside `path` that then takes its place: a failure leaves what was there. A path that
/// exists and is no regular file (/dev/stdout, a pipe) is written to directly. Throws Error.
void replace_file(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write);

}  // namespace treadle::io

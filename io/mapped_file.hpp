#pragma once
// A file as memory: pages are read when they are touched, and shared with every other process that reads them.

#include <cstddef>
#include <filesystem>
#include <span>

namespace treadle::io {

/// Read-only map of a whole regular file, which may be empty. Movable; the memory stays where it is. A file that
/// another process shortens while it is mapped takes its pages away (SIGBUS on access): replace files, never rewrite
/// them in place (replace_file does so).
class MappedFile {
 public:
  MappedFile() = default;  ///< no bytes
  /// Throws Error: does not exist, may not be read, is no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace treadle::io

#pragma once
// Where the bytes of a .npy file come from: a file, memory, an entry of an archive.

#include <treadle/io/tensor.hpp>

#include <cstdint>
#include <string>

namespace treadle::io {

/// Bytes one after the other, of a number that is known before they are read.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  std::int64_t left() const { return left_; }
  /// The next bytes. Throws Error where fewer are left, or where they cannot be read; `what` they are.
  void read(void* to, std::int64_t bytes, const char* what);

 protected:
  explicit ByteSource(std::int64_t size) : left_(size) {}

 private:
  /// Copies the next bytes, which are there; false, or Error, where it fails.
  virtual bool take(void* to, std::int64_t bytes) = 0;

  std::int64_t left_;
};

/// The one reader of .npy (npy.hpp). `what` stands for the file in errors.
Tensor read_npy(ByteSource& in, const std::string& what);

}  // namespace treadle::io

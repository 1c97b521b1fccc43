#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/mapped_file.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace treadle::io {

MappedFile::MappedFile(const std::filesystem::path& path) {
  size_of_file(path);  // for its errors, and so that opening does not wait for the other end of a pipe
  const auto fail = [&](int file) {
    const int reason = errno;
    if (file >= 0) ::close(file);
    throw Error(path.string() + ": cannot be read: " + std::strerror(reason));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(file);
  struct stat status{};
  if (::fstat(file, &status) != 0) fail(file);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > 0) {
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (at == MAP_FAILED) fail(file);
    bytes_ = {static_cast<const std::byte*>(at), size};
  }
  ::close(file);  // the map stays
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace treadle::io

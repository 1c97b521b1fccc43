#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace treadle::io {

namespace fs = std::filesystem;

namespace {

std::string reason() { return errno != 0 ? std::strerror(errno) : "input or output error"; }

}  // namespace

std::int64_t size_of_file(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) throw Error(path.string() + ": no such file");
  if (code) throw Error(path.string() + ": cannot be read: " + code.message());
  if (fs::is_directory(status)) throw Error(path.string() + ": is a folder; a file is needed");
  if (!fs::is_regular_file(status)) throw Error(path.string() + ": is no regular file; a file on a disk is needed");
  const auto size = fs::file_size(path, code);
  if (code) throw Error(path.string() + ": cannot be read: " + code.message());
  return static_cast<std::int64_t>(size);
}

std::string read_text(const fs::path& path) {
  std::string text(static_cast<std::size_t>(size_of_file(path)), '\0');
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in || !in.read(text.data(), static_cast<std::streamsize>(text.size())))
    throw Error(path.string() + ": cannot be read: " + reason());
  return text;
}

void replace_file(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  const bool direct = fs::exists(status) && !fs::is_regular_file(status);
  if (fs::is_directory(status)) throw Error(path.string() + ": is a folder; a file name is needed");
  // A link stays a link: the file behind it is replaced.
  const fs::path target = fs::is_symlink(fs::symlink_status(path, code)) ? fs::weakly_canonical(path, code) : path;
  fs::path temporary = target;
  if (!direct) temporary += ".tmp" + std::to_string(::getpid());
  const auto fail = [&](const std::string& why) {
    if (!direct) fs::remove(temporary, code);
    throw Error(path.string() + ": cannot be written: " + why);
  };
  errno = 0;
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) fail(reason());
  try {
    write(out);
  } catch (...) {
    out.close();
    if (!direct) fs::remove(temporary, code);
    throw;
  }
  out.close();
  if (!out) fail(reason());
  if (direct) return;
  fs::rename(temporary, target, code);
  if (code) fail(code.message());
}

}  // namespace treadle::io

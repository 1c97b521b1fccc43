#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/mapped_file.hpp>
#include <treadle/io/npy.hpp>
#include <treadle/io/npy_source.hpp>
#include <treadle/io/npz.hpp>
#include <treadle/io/text.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include <unistd.h>
#include <zip.h>

namespace treadle::io {

namespace {

constexpr std::int64_t most_entries = 65'535;
constexpr std::string_view suffix = ".npy";
constexpr std::uint64_t deflate_ratio = 1032;  // no byte of a deflate stream stands for more

struct Free {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

/// What libzip has taken over.
template <class T>
void give_away(Owned<T>& owned) {
  [[maybe_unused]] const T* taken = owned.release();
}

class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ~ZipError() { zip_error_fini(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_{};
};

Owned<zip_t> open(std::span<const std::byte> file) {
  if (file.empty()) throw Error("is empty; a .npz file is needed");
  ZipError error;
  Owned<zip_source_t> source(zip_source_buffer_create(file.data(), file.size(), 0, error.get()));
  Owned<zip_t> archive(source ? zip_open_from_source(source.get(), ZIP_RDONLY, error.get()) : nullptr);
  if (!archive) throw Error("is no .npz file: its ZIP archive cannot be read: " + error.text());
  give_away(source);  // the archive's now
  return archive;
}

/// An entry of an archive, unpacked while it is read.
class EntrySource : public ByteSource {
 public:
  EntrySource(zip_file_t* entry, std::int64_t size) : ByteSource(size), entry_(entry) {}

  /// Behind the last byte: that there is no other, and that the checksum holds.
  void finish() {
    char more = 0;
    const zip_int64_t n = zip_fread(entry_, &more, 1);
    if (n > 0) throw Error("holds more bytes than its archive says");
    if (n < 0) fail();
  }

 private:
  bool take(void* to, std::int64_t bytes) override {
    for (auto* at = static_cast<char*>(to); bytes > 0;) {
      const zip_int64_t n = zip_fread(entry_, at, static_cast<zip_uint64_t>(bytes));
      if (n < 0) fail();
      if (n == 0) throw Error("holds fewer bytes than its archive says");
      at += n;
      bytes -= n;
    }
    return true;
  }
  [[noreturn]] void fail() {
    throw Error(std::string("cannot be unpacked: ") + zip_error_strerror(zip_file_get_error(entry_)));
  }

  zip_file_t* entry_;
};

struct Entry {
  std::uint64_t index = 0;
  std::string file;  ///< "w.npy"
  std::int64_t size = 0;
};

/// Throws where the archive's list says what cannot be, so that nothing is unpacked in vain.
std::vector<Entry> entries_of(zip_t* archive, std::uint64_t file_bytes) {
  const std::int64_t count = zip_get_num_entries(archive, 0);
  if (count > most_entries)
    throw Error("has " + std::to_string(count) + " entries; at most " + std::to_string(most_entries) + " are read");
  const auto memory =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<Entry> entries;
  std::set<std::string> names;
  std::uint64_t all = 0, all_packed = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & needed) != needed)
      throw Error("has an entry " + std::to_string(i) + " that cannot be read: " + zip_strerror(archive));
    const std::string name = stat.name;
    const std::string who = "entry " + in_quotes(name) + " ";
    if (name.size() <= suffix.size() || !name.ends_with(suffix))
      throw Error(who + "is no .npy file; a .npz file holds NAME.npy only");
    if (!names.insert(name).second) throw Error(who + "is there twice; each name once is right");
    if (stat.encryption_method != ZIP_EM_NONE) throw Error(who + "is encrypted; stored or deflated entries are read");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
      throw Error(who + "is packed by method " + std::to_string(stat.comp_method) +
                  "; stored or deflated entries are read");
    if (stat.comp_size > file_bytes - all_packed)
      throw Error(who + "claims " + std::to_string(stat.comp_size) + " bytes of the file, which has " +
                  std::to_string(file_bytes) + ", " + std::to_string(all_packed) + " of them in entries before");
    if (stat.size / deflate_ratio > stat.comp_size)
      throw Error(who + "claims to unpack " + std::to_string(stat.comp_size) + " bytes to " +
                  std::to_string(stat.size) + ", more than deflate can");
    if (stat.size > memory - all)
      throw Error(who + "claims " + std::to_string(stat.size) +
                  " bytes; the entries would need more memory than this "
                  "machine has");
    all_packed += stat.comp_size;
    all += stat.size;
    entries.push_back({index, name, static_cast<std::int64_t>(stat.size)});
  }
  return entries;
}

void check(std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty()) throw Error("a tensor has no name");
    if (find_bad_utf8(name) != std::string_view::npos || name.find('\0') != std::string_view::npos)
      throw Error("the tensor's name " + in_quotes(name) + " is no UTF-8 without zero bytes");
    if (!names.insert(name).second) throw Error("two tensors are named " + in_quotes(name));
    if (!tensor && tensor.size() > 0) throw Error("the tensor " + in_quotes(name) + " is not given");
  }
}

/// The archive's bytes.
std::string packed(std::span<const NamedTensor> tensors, bool deflated) {
  // libzip removes an archive without entries.
  if (tensors.empty()) return "PK\5\6" + std::string(18, '\0');
  ZipError error;
  Owned<zip_source_t> target(zip_source_buffer_create(nullptr, 0, 0, error.get()));
  if (!target) throw Error(error.text());
  zip_source_keep(target.get());  // for us, beside the archive's own
  Owned<zip_t> archive(zip_open_from_source(target.get(), ZIP_TRUNCATE, error.get()));
  if (!archive) {
    zip_source_free(target.get());
    throw Error(error.text());
  }
  std::vector<std::string> files;  // libzip reads them when it closes the archive
  files.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    std::ostringstream out;
    write_npy(out, tensor);
    const std::string& file = files.emplace_back(std::move(out).str());
    Owned<zip_source_t> source(zip_source_buffer(archive.get(), file.data(), file.size(), 0));
    const std::string entry = std::string(name) + std::string(suffix);
    const zip_int64_t index = source ? zip_file_add(archive.get(), entry.c_str(), source.get(), ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) throw Error(zip_strerror(archive.get()));
    give_away(source);
    const auto i = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t first_day = 1 << 5 | 1;  // of 1980, where the format's time starts
    if (zip_set_file_compression(archive.get(), i, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive.get(), i, 0, first_day, 0) != 0)
      throw Error(zip_strerror(archive.get()));
  }
  if (zip_close(archive.get()) != 0) throw Error(zip_strerror(archive.get()));
  give_away(archive);

  zip_stat_t stat;
  if (zip_source_open(target.get()) != 0 || zip_source_stat(target.get(), &stat) != 0)
    throw Error(zip_error_strerror(zip_source_error(target.get())));
  std::string bytes(static_cast<std::size_t>(stat.size), '\0');
  const zip_int64_t n = zip_source_read(target.get(), bytes.data(), bytes.size());
  if (n < 0 || static_cast<std::size_t>(n) != bytes.size()) throw Error("the archive cannot be read back");
  zip_source_close(target.get());
  return bytes;
}

}  // namespace

std::map<std::string, Tensor> load_npz(std::span<const std::byte> file, const std::string& what) {
  try {
    const Owned<zip_t> archive = open(file);
    std::map<std::string, Tensor> tensors;
    for (const Entry& e : entries_of(archive.get(), file.size())) {
      const std::string who = "entry " + in_quotes(e.file);
      const Owned<zip_file_t> entry(zip_fopen_index(archive.get(), e.index, 0));
      if (!entry) throw Error(who + " cannot be unpacked: " + zip_strerror(archive.get()));
      EntrySource source(entry.get(), e.size);
      Tensor tensor = read_npy(source, who);
      try {
        source.finish();
      } catch (const Error& error) {
        throw Error(who + ": " + error.what());
      }
      tensors.emplace(e.file.substr(0, e.file.size() - suffix.size()), std::move(tensor));
    }
    return tensors;
  } catch (const std::bad_alloc&) {
    throw Error(what + ": needs more memory than there is");
  } catch (const Error& error) {
    throw Error(what + ": " + error.what());
  }
}

std::map<std::string, Tensor> load_npz(const std::filesystem::path& path) {
  const MappedFile file(path);
  return load_npz(file.bytes(), path.string());
}

void save_npz(const std::filesystem::path& path, std::span<const NamedTensor> tensors, bool deflated) {
  std::string bytes;
  try {
    check(tensors);
    bytes = packed(tensors, deflated);
  } catch (const Error& error) {
    throw Error(path.string() + ": cannot be written: " + error.what());
  }
  replace_file(path, [&](std::ostream& out) { out.write(bytes.data(), static_cast<std::streamsize>(bytes.size())); });
}

}  // namespace treadle::io

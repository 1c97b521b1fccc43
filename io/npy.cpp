#include <treadle/io/elements.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/npy.hpp>
#include <treadle/io/npy_source.hpp>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include <unistd.h>

namespace treadle::io {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t longest_header = 1 << 20;

struct Header {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// A reader of the one Python literal that a header is: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class Literal {
 public:
  explicit Literal(std::string_view text) : rest_(text) {}

  Header read() {
    Header header;
    std::optional<std::string> descr;
    std::optional<bool> fortran;
    std::optional<std::vector<std::int64_t>> shape;
    expect('{');
    while (!next('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        if (peek() == '[') throw Error("is an array of records; one number per element is needed");
        descr = string();
      } else if (key == "fortran_order" && !fortran) {
        fortran = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        throw Error("has an unexpected or repeated header entry '" + key +
                    "'; descr, fortran_order and shape once each are right");
      }
      if (!next(',')) {
        expect('}');
        break;
      }
    }
    if (peek() != '\0') throw malformed();
    for (const auto& [there, name] :
         {std::pair{descr.has_value(), "descr"}, {fortran.has_value(), "fortran_order"}, {shape.has_value(), "shape"}})
      if (!there) throw Error(std::string("has no '") + name + "' in its header");
    if (*fortran) throw Error("is in Fortran order; save it in C order (numpy.ascontiguousarray)");
    header.dtype = dtype(*descr);
    header.shape = *shape;
    if (header.shape.size() > static_cast<std::size_t>(max_rank))
      throw Error("has rank " + std::to_string(header.shape.size()) + "; at most " + std::to_string(max_rank) +
                  " is read");
    return header;
  }

 private:
  static Error malformed() {
    return Error("has a malformed header; {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } would be right");
  }
  static DType dtype(const std::string& descr) {
    constexpr std::string_view needed = "little-endian f4, f8, i4, i8 or b1 is read";
    if (descr.starts_with('>')) throw Error("is big-endian ('" + descr + "'); " + std::string(needed));
    const std::string_view type = std::string_view(descr).substr(descr.find_first_not_of("<=|") == 1 ? 1 : 0);
    if (type == "f4") return DType::f32;
    if (type == "f8") return DType::f64;
    if (type == "i4") return DType::i32;
    if (type == "i8") return DType::i64;
    if (type == "b1" || type == "?") return DType::boolean;
    throw Error("has dtype '" + descr + "'; " + std::string(needed));
  }

  char peek() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0]))) rest_.remove_prefix(1);
    if (rest_.empty()) return '\0';
    if (rest_[0] == '\0') throw malformed();
    return rest_[0];
  }
  bool next(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!next(c)) throw malformed();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') throw malformed();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos || end > 64) throw malformed();
    std::string text(rest_.substr(1, end - 1));
    if (!std::ranges::all_of(text, [](unsigned char c) { return std::isprint(c) && c != '\\'; })) throw malformed();
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    throw malformed();
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!next(')')) {
      peek();
      std::int64_t dim = 0;
      const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
      if (code == std::errc::result_out_of_range) throw Error("has a dim in its shape that is larger than any memory");
      if (code != std::errc{}) throw malformed();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2 wrote 3L
      if (dims.size() >= 64) throw malformed();
      dims.push_back(dim);
      if (next(',')) continue;
      if (dims.size() == 1) throw malformed();  // (3) is a number, not a shape
      expect(')');
      break;
    }
    return dims;
  }

  std::string_view rest_;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : ByteSource(size_of_file(path)), in_(path, std::ios::binary) {
    if (!in_) throw Error(path.string() + ": cannot be opened for reading");
  }

 private:
  bool take(void* to, std::int64_t bytes) override { return !!in_.read(static_cast<char*>(to), bytes); }

  std::ifstream in_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes)
      : ByteSource(static_cast<std::int64_t>(bytes.size())), at_(bytes.data()) {}

 private:
  bool take(void* to, std::int64_t bytes) override {
    std::memcpy(to, at_, static_cast<std::size_t>(bytes));
    at_ += bytes;
    return true;
  }

  const std::byte* at_;
};

Tensor load(ByteSource& in) {
  unsigned char start[8];
  if (in.left() == 0) throw Error("is empty; a .npy file is needed");
  const std::int64_t known = std::min<std::int64_t>(in.left(), 6);
  in.read(start, known, "magic bytes");
  if (!std::equal(start, start + known, magic.begin(),
                  [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); }))
    throw Error("is no .npy file: it does not start with \\x93NUMPY");
  if (known < 6) throw Error("ends inside its magic bytes");
  in.read(start + 6, 2, "version");
  const int version = start[6];
  if (version < 1 || version > 3 || start[7] != 0)
    throw Error("has .npy version " + std::to_string(version) + "." + std::to_string(start[7]) +
                "; 1.0, 2.0 or 3.0 is read");

  unsigned char length_bytes[4] = {};
  in.read(length_bytes, version == 1 ? 2 : 4, "header length");
  std::int64_t length = 0;
  for (int i = 3; i >= 0; --i) length = length * 256 + length_bytes[i];
  if (length > longest_header)
    throw Error("claims a header of " + std::to_string(length) + " bytes; at most 1 MiB is read");
  if (length > in.left())
    throw Error("ends inside its header: " + std::to_string(length) + " bytes are needed, " +
                std::to_string(in.left()) + " are left");
  std::string text(static_cast<std::size_t>(length), ' ');
  in.read(text.data(), length, "header");

  Header header = Literal(text).read();
  const std::int64_t count = checked_size(header.shape, header.dtype);
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(header.dtype));
  if (bytes != in.left())
    throw Error((bytes > in.left() ? "is truncated: shape " : "has bytes behind its data: shape ") +
                shape_text(header.shape) + " of " + std::string(name(header.dtype)) + " needs " +
                std::to_string(bytes) + " bytes of data, the file has " + std::to_string(in.left()));
  if (bytes > std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE))
    throw Error("needs " + std::to_string(bytes) + " bytes of memory, more than this machine has");

  Tensor tensor(header.dtype, std::move(header.shape));
  in.read(tensor.data.data(), bytes, "data");
  // A bool in memory is 0 or 1; a file may say true in other ways.
  if (tensor.dtype == DType::boolean)
    for (std::byte& b : tensor.data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return tensor;
}

}  // namespace

void ByteSource::read(void* to, std::int64_t bytes, const char* what) {
  if (bytes > left_)
    throw Error(std::string("ends inside its ") + what + ": " + std::to_string(bytes) + " bytes are needed, " +
                std::to_string(left_) + " are left");
  if (bytes > 0 && !take(to, bytes)) throw Error(std::string("cannot be read past the start of its ") + what);
  left_ -= bytes;
}

Tensor read_npy(ByteSource& in, const std::string& what) {
  try {
    return load(in);
  } catch (const std::bad_alloc&) {
    throw Error(what + ": needs more memory than there is");
  } catch (const Error& error) {
    throw Error(what + ": " + error.what());
  }
}

Tensor load_npy(const std::filesystem::path& path) {
  FileSource in(path);
  return read_npy(in, path.string());
}

Tensor load_npy(std::span<const std::byte> file, const std::string& what) {
  MemorySource in(file);
  return read_npy(in, what);
}

void write_npy(std::ostream& out, const TensorView& tensor) {
  constexpr std::string_view types[] = {"<f4", "<f8", "<i4", "<i8", "|b1"};
  std::string header =
      "{'descr': '" + std::string(types[static_cast<int>(tensor.dtype)]) + "', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < tensor.rank; ++i)
    header += std::to_string(tensor.shape[static_cast<std::size_t>(i)]) + (i + 1 < tensor.rank ? ", "
                                                                           : tensor.rank == 1  ? ","
                                                                                               : "");
  header += "), }";
  constexpr std::size_t before = 10;  // magic, version, length; the data starts at a multiple of 64
  header.resize((before + header.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  header += '\n';
  out << magic << '\1' << '\0' << static_cast<char>(header.size() & 255) << static_cast<char>(header.size() >> 8)
      << header;
  write_elements(out, tensor);
}

void save_npy(const std::filesystem::path& path, const TensorView& tensor) {
  replace_file(path, [&](std::ostream& out) { write_npy(out, tensor); });
}

}  // namespace treadle::io

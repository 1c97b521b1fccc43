// Reading safetensors: one file, a folder, or the shards of an index.
#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/safetensors.hpp>
#include <treadle/io/text.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace treadle::io {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::size_t length_bytes = 8;
constexpr std::size_t longest_header = 100'000'000;
constexpr std::size_t deepest_header = 8;  // 3 are needed
constexpr std::size_t highest_rank = 64;

std::string text_of(std::uint64_t x) { return std::to_string(x); }
/// A JSON value for an error.
std::string shown(const json& x) { return x.is_structured() ? std::string(x.type_name()) : in_quotes(x.dump()); }

/// The JSON text between the length and the data.
std::string_view header_text(std::span<const std::byte> file) {
  if (file.empty()) throw Error("is empty; a safetensors file is needed");
  if (file.size() < length_bytes)
    throw Error("ends inside its header length: 8 bytes are needed, there are " + text_of(file.size()));
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(file[i]);
  if (length == 0) throw Error("claims a header of 0 bytes; a JSON object is needed, {} where there are no tensors");
  if (length > longest_header) throw Error("claims a header of " + text_of(length) + " bytes; at most 100 MB is read");
  const std::size_t left = file.size() - length_bytes;
  if (length > left)
    throw Error("ends inside its header: " + text_of(length) + " bytes are needed, " + text_of(left) + " are left");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + length_bytes,
                              static_cast<std::size_t>(length));
  if (text[0] != '{') throw Error("has a header that does not start with '{'; a JSON object is needed");
  return text;
}

/// A tensor's entry and where its bytes lie in the data.
struct Placed {
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

const json& field(const json& entry, const char* key, bool (json::*is)() const noexcept, const char* type) {
  const auto found = entry.find(key);
  if (found == entry.end()) throw Error(std::string("has no '") + key + "'; " + type + " is needed");
  if (!((*found).*is)()) throw Error(std::string("has the ") + key + " " + shown(*found) + "; " + type + " is needed");
  return *found;
}

std::uint64_t whole_number(const json& x, const char* what) {
  if (!x.is_number_unsigned())
    throw Error(std::string("has ") + shown(x) + " in its " + what + "; whole numbers from 0 are needed");
  return x.get<std::uint64_t>();
}

StoredType type_of(const json& entry) {
  const std::string text = field(entry, "dtype", &json::is_string, "the name of a type").get<std::string>();
  std::string all;
  for (int i = 0; i <= static_cast<int>(StoredType::u64); ++i) {
    const auto type = static_cast<StoredType>(i);
    if (text == name(type)) return type;
    all += (i > 0 ? ", " : "") + std::string(name(type));
  }
  throw Error("has the dtype " + in_quotes(text) + "; one of " + all + " is read");
}

/// Bytes of the tensor; the products are checked before they are made.
std::uint64_t bytes_of(const StoredTensor& tensor) {
  const std::uint64_t limit = std::numeric_limits<std::int64_t>::max() / size_of(tensor.type);
  std::uint64_t n = 1;
  bool empty = false;
  for (const std::int64_t dim : tensor.shape) {
    const auto d = static_cast<std::uint64_t>(dim);
    empty = empty || d == 0;
    // The others must fit all the same where one dim is 0.
    if (d > 0 && n > limit / d) throw Error("has the shape " + shape_text(tensor.shape) + ", larger than any memory");
    n *= std::max<std::uint64_t>(d, 1);
  }
  return empty ? 0 : n * size_of(tensor.type);
}

/// Fields beside the three that the format knows are left alone, as its own library does.
Placed placed(const json& entry, std::uint64_t data_bytes) {
  if (!entry.is_object())
    throw Error(std::string("is ") + entry.type_name() + "; an object with dtype, shape and data_offsets is needed");
  Placed p;
  p.tensor.type = type_of(entry);
  const json& shape = field(entry, "shape", &json::is_array, "a list of dims");
  if (shape.size() > highest_rank)
    throw Error("has rank " + text_of(shape.size()) + "; at most " + text_of(highest_rank) + " is read");
  for (const json& dim : shape) {
    const std::uint64_t d = whole_number(dim, "shape");
    if (d > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      throw Error("has the dim " + text_of(d) + ", larger than any memory");
    p.tensor.shape.push_back(static_cast<std::int64_t>(d));
  }
  const json& offsets = field(entry, "data_offsets", &json::is_array, "a list of begin and end");
  if (offsets.size() != 2) throw Error("has " + text_of(offsets.size()) + " data_offsets; begin and end are needed");
  p.begin = whole_number(offsets[0], "data_offsets");
  p.end = whole_number(offsets[1], "data_offsets");
  const std::string range = "[" + text_of(p.begin) + ", " + text_of(p.end) + "]";
  if (p.begin > p.end) throw Error("has the data_offsets " + range + "; begin must not lie behind end");
  if (const std::uint64_t needed = bytes_of(p.tensor); needed != p.end - p.begin)
    throw Error("has the data_offsets " + range + ", " + text_of(p.end - p.begin) + " bytes; shape " +
                shape_text(p.tensor.shape) + " of " + std::string(name(p.tensor.type)) + " needs " + text_of(needed));
  if (p.end > data_bytes)
    throw Error("ends at byte " + text_of(p.end) + " of the data; the file has " + text_of(data_bytes) +
                " bytes of it: it is truncated, or the data_offsets are wrong");
  return p;
}

/// Every byte of the data belongs to one tensor.
void check_layout(const std::vector<Placed>& all, std::uint64_t data_bytes) {
  std::vector<const Placed*> order;
  order.reserve(all.size());
  for (const Placed& p : all) order.push_back(&p);
  std::ranges::sort(order, {}, [](const Placed* p) { return std::pair(p->begin, p->end); });
  std::uint64_t at = 0;
  const Placed* before = nullptr;
  for (const Placed* p : order) {
    const std::string who =
        "tensor " + in_quotes(p->tensor.name) + " starts at byte " + text_of(p->begin) + " of the data";
    if (p->begin < at)
      throw Error(who + ", before tensor " + in_quotes(before->tensor.name) + " ends at byte " + text_of(at) +
                  "; each byte may belong to one tensor only");
    if (p->begin > at)
      throw Error(who + ", but bytes " + text_of(at) + " to " + text_of(p->begin) +
                  " belong to no tensor; it should start at byte " + text_of(at));
    at = p->end;
    before = p;
  }
  if (at < data_bytes)
    throw Error("has " + text_of(data_bytes - at) + " bytes behind its last tensor; the data should end with it");
}

std::map<std::string, std::string> metadata_of(const json& entry) {
  if (!entry.is_object())
    throw Error(std::string("has a __metadata__ that is ") + entry.type_name() + "; an object of strings is needed");
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string())
      throw Error("has " + in_quotes(key) + " in its __metadata__ as " + value.type_name() + "; a string is needed");
    result.emplace(key, value.get<std::string>());
  }
  return result;
}

/// name → file of an index.
std::map<std::string, std::string> weight_map(const fs::path& index) {
  const json from = read_json(index);
  try {
    if (!from.is_object())
      throw Error(std::string("holds ") + from.type_name() + "; an object with 'weight_map' is needed");
    std::map<std::string, std::string> result;
    for (const auto& [name, file] : field(from, "weight_map", &json::is_object, "an object, name to file,").items()) {
      if (!file.is_string())
        throw Error("gives " + std::string(file.type_name()) + " as the file of tensor " + in_quotes(name) +
                    "; a file name is needed");
      const std::string text = file.get<std::string>();
      // Files beside the index only.
      if (text.empty() || text == "." || text == ".." || text.find_first_of(std::string_view("/\\\0", 3)) != text.npos)
        throw Error("gives " + in_quotes(text) + " as the file of tensor " + in_quotes(name) +
                    "; the name of a file beside the index is needed, without folders");
      result.emplace(name, text);
    }
    if (result.empty()) throw Error("has an empty weight_map; tensors and their files are needed");
    return result;
  } catch (const Error& error) {
    throw Error(index.string() + ": " + error.what());
  }
}

}  // namespace

void Safetensors::add(std::span<const std::byte> bytes, const fs::path& file) {
  try {
    const std::string_view text = header_text(bytes);
    const std::span<const std::byte> data = bytes.subspan(length_bytes + text.size());
    json header;
    try {
      header = parse_json(text, {.bytes = longest_header, .depth = deepest_header});
    } catch (const Error& error) {
      throw Error(std::string("has a header that ") + error.what());
    }
    std::vector<Placed> all;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        metadata_.merge(metadata_of(entry));
        continue;
      }
      try {
        all.push_back(placed(entry, data.size()));
      } catch (const Error& error) {
        throw Error("tensor " + in_quotes(name) + " " + error.what());
      }
      all.back().tensor.name = name;
    }
    check_layout(all, data.size());
    for (Placed& p : all) {
      p.tensor.bytes = data.subspan(static_cast<std::size_t>(p.begin), static_cast<std::size_t>(p.end - p.begin));
      p.tensor.file = file;
      tensors_.push_back(std::move(p.tensor));
    }
    bytes_ += bytes.size();
  } catch (const Error& error) {
    throw Error(file.string() + ": " + error.what());
  }
}

void Safetensors::map(const fs::path& file) { add(files_.emplace_back(file).bytes(), file); }

void Safetensors::sort() { std::ranges::sort(tensors_, {}, &StoredTensor::name); }

Safetensors Safetensors::read(std::span<const std::byte> bytes, const fs::path& file) {
  Safetensors result;
  result.add(bytes, file);
  result.sort();
  return result;
}

Safetensors Safetensors::open(const fs::path& path) {
  std::error_code code;
  fs::path file = path;
  if (fs::is_directory(path, code)) {
    file = path / "model.safetensors";
    if (!fs::exists(file, code)) file = path / "model.safetensors.index.json";
    if (!fs::exists(file, code))
      throw Error(path.string() +
                  ": holds neither model.safetensors nor model.safetensors.index.json; the path of a "
                  "file, or of a folder with one of them, is needed");
  }
  if (file.extension() == ".json") return open_shards(file);
  Safetensors result;
  result.map(file);
  result.sort();
  return result;
}

Safetensors Safetensors::open_shards(const fs::path& index) {
  const std::map<std::string, std::string> listed = weight_map(index);
  std::set<std::string> files;
  for (const auto& [name, file] : listed) files.insert(file);
  Safetensors result;
  for (const std::string& file : files) {
    std::error_code code;
    const fs::path path = index.parent_path() / file;
    if (!fs::exists(path, code))
      throw Error(index.string() + ": names the shard " + in_quotes(file) + ", which does not exist beside it");
    result.map(path);
  }
  result.sort();
  // A tensor in two shards is in one of them without being listed for it.
  for (const StoredTensor& tensor : result.tensors_) {
    const auto found = listed.find(tensor.name);
    if (found == listed.end())
      throw Error(tensor.file.string() + ": holds tensor " + in_quotes(tensor.name) + ", which " + index.string() +
                  " does not list");
    if (tensor.file.filename() != found->second)
      throw Error(tensor.file.string() + ": holds tensor " + in_quotes(tensor.name) + ", which " + index.string() +
                  " lists in " + in_quotes(found->second));
  }
  for (const auto& [name, file] : listed)
    if (result.find(name) == nullptr)
      throw Error(index.string() + ": lists tensor " + in_quotes(name) + " in the shard " + in_quotes(file) +
                  ", which does not hold it");
  return result;
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace treadle::io

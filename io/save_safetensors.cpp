// Writing safetensors.
#include <treadle/io/elements.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/safetensors.hpp>
#include <treadle/io/text.hpp>

#include <algorithm>
#include <utility>

namespace treadle::io {

namespace {

StoredType stored(DType dtype) {
  switch (dtype) {
    case DType::f32: return StoredType::f32;
    case DType::f64: return StoredType::f64;
    case DType::i32: return StoredType::i32;
    case DType::i64: return StoredType::i64;
    case DType::boolean: break;
  }
  return StoredType::boolean;
}

int bytes_of_one(const NamedTensor& t) { return static_cast<int>(size_of(t.tensor.dtype)); }

/// The text in quotes, as JSON has it.
std::string json_text(std::string_view text, const char* what) {
  if (find_bad_utf8(text) != std::string_view::npos)
    throw Error(std::string(what) + " " + in_quotes(text) + " is no UTF-8; safetensors files hold no other text");
  return nlohmann::json(text).dump();
}

void check(std::span<const NamedTensor> sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [name, tensor] = sorted[i];
    if (name == "__metadata__") throw Error("a tensor is named '__metadata__', which stands for something else here");
    if (!tensor && tensor.size() > 0) throw Error("the tensor " + in_quotes(name) + " is not given");
    if (i > 0 && sorted[i - 1].name == name) throw Error("two tensors are named " + in_quotes(name));
  }
}

std::string header_of(std::span<const NamedTensor> order, const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto next = [&] { return text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::string entries;
    for (const auto& [key, value] : metadata)
      entries += (entries.empty() ? "" : ",") + json_text(key, "the metadata key") + ":" +
                 json_text(value, "the metadata value");
    text += "\"__metadata__\":{" + entries + "}";
  }
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : order) {
    const StoredType type = stored(tensor.dtype);
    std::string shape;
    for (int i = 0; i < tensor.rank; ++i)
      shape += (i > 0 ? "," : "") + std::to_string(tensor.shape[static_cast<std::size_t>(i)]);
    const std::uint64_t end = at + static_cast<std::uint64_t>(tensor.size()) * size_of(type);
    text += next() + json_text(name, "the tensor's name") + ":{\"dtype\":\"" + std::string(io::name(type)) +
            "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  text += "}";
  // Spaces, so that the data starts at a multiple of 64 bytes of the file, which is mapped at one of 4096.
  text.resize((8 + text.size() + 63) / 64 * 64 - 8, ' ');
  if (text.size() > 100'000'000)
    throw Error("the header would have " + std::to_string(text.size()) + " bytes; at most 100 MB is read again");
  return text;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<NamedTensor> order(tensors.begin(), tensors.end());
  std::string header;
  try {
    std::ranges::sort(order, {}, &NamedTensor::name);
    check(order);
    std::ranges::sort(order, {}, [](const NamedTensor& t) { return std::pair(-bytes_of_one(t), t.name); });
    header = header_of(order, metadata);
  } catch (const Error& error) {
    throw Error(path.string() + ": cannot be written: " + error.what());
  }
  replace_file(path, [&](std::ostream& out) {
    for (int i = 0; i < 8; ++i) out.put(static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 255));
    out << header;
    for (const NamedTensor& t : order) write_elements(out, t.tensor);
  });
}

}  // namespace treadle::io

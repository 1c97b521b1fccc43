#pragma once
// JSON from files that nobody has looked at. Not installed: it shows a JSON library's type.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace treadle::io {

struct JsonLimits {
  std::size_t bytes = 100'000'000;  ///< of the text
  std::size_t depth = 64;           ///< objects and lists inside each other
};

/// One JSON value. Refused beside what is no JSON: more bytes or levels than the limits, bytes that are no UTF-8, a key
/// twice in one object, numbers beyond a double. Throws Error, without the name of a file: "is no valid JSON: …".
nlohmann::json parse_json(std::string_view text, JsonLimits limits = {});

/// The same for a file; its size is looked at before it is read. Throws Error, with the file's name.
nlohmann::json read_json(const std::filesystem::path& path, JsonLimits limits = {});

}  // namespace treadle::io

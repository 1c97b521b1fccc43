#include "case_files.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/safetensors.hpp>

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace treadle::cli {

namespace {

std::vector<std::byte> bytes_of(const std::string& hex, const std::string& name) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::uint8_t value = 0;
    const char* at = hex.data() + 2 * i;
    const auto [end, code] = std::from_chars(at, at + 2, value, 16);
    if (code != std::errc{} || end != at + 2) throw Error(fmt::format("the file '{}' is no text of hex digits", name));
    bytes[i] = static_cast<std::byte>(value);
  }
  if (hex.size() % 2 != 0) throw Error(fmt::format("the file '{}' has half a byte at its end", name));
  return bytes;
}

}  // namespace

Verdicts open_safetensors(const nlohmann::json& attributes) {
  Verdicts result;
  try {
    for (const nlohmann::json& file : attributes.at("files")) {
      const auto name = file.at("name").get<std::string>(), verdict = file.at("verdict").get<std::string>();
      const std::vector<std::byte> bytes = bytes_of(file.at("hex").get<std::string>(), name);
      std::string error;
      try {
        static_cast<void>(io::Safetensors::read(bytes, name));
      } catch (const io::Error& e) {
        error = e.what();
      }
      ++result.files;
      if (verdict == (error.empty() ? "accept" : "reject"))
        ++result.agree;
      else if (result.problem.empty())
        result.problem = error.empty() ? fmt::format("{}: accepted; the case says {}", name, verdict)
                                       : fmt::format("{}; the case says {}", error, verdict);
    }
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("attributes of safetensors_open: {}", e.what()));
  }
  return result;
}

}  // namespace treadle::cli

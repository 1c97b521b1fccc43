#include <treadle/io/error.hpp>
#include <treadle/io/file.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/text.hpp>

#include <new>
#include <set>
#include <string>
#include <vector>

namespace treadle::io {

using nlohmann::json;

namespace {

void check_size(std::size_t bytes, JsonLimits limits) {
  if (bytes > limits.bytes)
    throw Error("has " + std::to_string(bytes) + " bytes of JSON; at most " + std::to_string(limits.bytes) +
                " are read");
}

/// "[json.exception.parse_error.101] parse error at line 1, column 2: …" without its number, and without what was read
/// there, which may be long and hold anything.
std::string reason(const json::exception& error) {
  std::string what = error.what();
  if (const std::size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
  if (const std::size_t read = what.find("; last read"); read != std::string::npos) what.erase(read);
  return what.size() > 200 ? "a number is out of range" : what;
}

/// Called for every part while the text is read, so that what is refused is never built.
class Strict {
 public:
  explicit Strict(std::size_t depth) : depth_(depth) {}

  bool operator()(json::parse_event_t event, const json& parsed) {
    using enum json::parse_event_t;
    if (event == object_start || event == array_start) {
      if (keys_.size() >= depth_)
        throw Error("nests deeper than " + std::to_string(depth_) + " levels of objects and lists");
      keys_.emplace_back();
    } else if (event == object_end || event == array_end) {
      keys_.pop_back();
    } else if (event == key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(name).second)
        throw Error("has the key " + in_quotes(name) + " twice in one object; each once is right");
    }
    return true;
  }

 private:
  std::size_t depth_;
  std::vector<std::set<std::string>> keys_;  ///< of the objects and lists that are open
};

}  // namespace

json parse_json(std::string_view text, JsonLimits limits) {
  check_size(text.size(), limits);
  if (const std::size_t at = find_bad_utf8(text); at != std::string_view::npos)
    throw Error("is no UTF-8: byte " + std::to_string(at) + " of the JSON, " + in_quotes(text.substr(at, 1)) +
                ", is no part of a character");
  // The library takes it for the end of the text.
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos)
    throw Error("is no valid JSON: byte " + std::to_string(at) + " is 0");
  try {
    Strict strict(limits.depth);
    return json::parse(text.begin(), text.end(),
                       [&](int, json::parse_event_t event, const json& parsed) { return strict(event, parsed); });
  } catch (const json::exception& error) {
    throw Error("is no valid JSON: " + reason(error));
  } catch (const std::bad_alloc&) {
    throw Error("needs more memory than there is");
  }
}

json read_json(const std::filesystem::path& path, JsonLimits limits) {
  const std::int64_t bytes = size_of_file(path);
  try {
    check_size(static_cast<std::size_t>(bytes), limits);
  } catch (const Error& error) {
    throw Error(path.string() + ": " + error.what());
  }
  const std::string text = read_text(path);
  try {
    return parse_json(text, limits);
  } catch (const Error& error) {
    throw Error(path.string() + ": " + error.what());
  }
}

}  // namespace treadle::io

#include <treadle/models/config.hpp>

#include <treadle/backends/error.hpp>
#include <treadle/io/json.hpp>

#include <array>
#include <cmath>
#include <utility>

namespace treadle::models {

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 31;  ///< of any size in a configuration

constexpr std::array<std::pair<std::string_view, activation>, 12> functions = {{
    {"gelu", activation::gelu},
    {"gelu_python", activation::gelu},
    {"gelu_new", activation::gelu_tanh},
    {"gelu_fast", activation::gelu_tanh},
    {"gelu_pytorch_tanh", activation::gelu_tanh},
    {"gelu_accurate", activation::gelu_tanh},
    {"relu", activation::relu},
    {"silu", activation::silu},
    {"swish", activation::silu},
    {"quick_gelu", activation::quick_gelu},
    {"tanh", activation::tanh},
    {"sigmoid", activation::sigmoid},
}};

}  // namespace

Config Config::read(const std::filesystem::path& path) {
  Config c;
  c.where_ = path.string();
  c.json_ = io::read_json(path);
  if (!c.json_.is_object()) throw Error(c.where_ + ": must hold an object {…}");
  return c;
}

const nlohmann::json* Config::find(std::string_view key) const {
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool Config::has(std::string_view key) const { return find(key) != nullptr; }

void Config::refuse(std::string_view key, std::string_view right) const {
  const nlohmann::json* value = find(key);
  throw Error(where_ + ": " + std::string(key) + (value != nullptr ? " is " + value->dump() : " is missing") + "; " +
              std::string(right));
}

std::int64_t Config::integer(std::string_view key, std::int64_t least) const {
  const nlohmann::json* value = find(key);
  const bool fits = value != nullptr && value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{largest});
  if (!fits || value->get<std::int64_t>() < least || value->get<std::int64_t>() > largest)
    refuse(key, "a whole number of " + std::to_string(least) + " or more is needed");
  return value->get<std::int64_t>();
}

std::int64_t Config::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least) const {
  return has(key) ? integer(key, least) : otherwise;
}

double Config::number_or(std::string_view key, double otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(key, "a number is needed");
  return value->get<double>();
}

bool Config::flag_or(std::string_view key, bool otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) refuse(key, "true or false is needed");
  return value->get<bool>();
}

std::string Config::text_or(std::string_view key, std::string_view otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) refuse(key, "a text is needed");
  return value->get<std::string>();
}

std::vector<std::int64_t> Config::integers(std::string_view key, std::int64_t count, std::int64_t least) const {
  const nlohmann::json* value = find(key);
  const auto n = static_cast<std::size_t>(count);
  if (value != nullptr && !value->is_array()) return std::vector<std::int64_t>(n, integer(key, least));
  const std::string right =
      std::to_string(count) + " whole numbers of " + std::to_string(least) + " or more are needed, one for each layer";
  if (value == nullptr || value->size() != n) refuse(key, right);
  std::vector<std::int64_t> out;
  for (const nlohmann::json& x : *value) {
    if (!x.is_number_integer() || x.get<std::int64_t>() < least || x.get<std::int64_t>() > largest) refuse(key, right);
    out.push_back(x.get<std::int64_t>());
  }
  return out;
}

activation Config::function_or(std::string_view key, std::string_view otherwise) const {
  const std::string name = text_or(key, otherwise);
  std::string known;
  for (const auto& [called, function] : functions) {
    if (called == name) return function;
    known += (known.empty() ? "" : ", ") + std::string(called);
  }
  refuse(key, "the functions are " + known);
}

std::int64_t Config::labels() const {
  const nlohmann::json* names = find("id2label");
  if (names == nullptr) return integer_or("num_labels", 2);
  if (names->empty()) refuse("id2label", "at least one label is needed");
  return static_cast<std::int64_t>(names->size());
}

Config Config::object(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr || !value->is_object()) refuse(key, "an object {…} is needed");
  Config c;
  c.json_ = *value;
  c.where_ = where_ + ": " + std::string(key);
  return c;
}

void Config::only(std::string_view key, std::initializer_list<nlohmann::json> supported) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return;
  std::string known;
  for (const nlohmann::json& s : supported) {
    if (*value == s) return;
    known += (known.empty() ? "" : " or ") + s.dump();
  }
  refuse(key, "only " + known + " is supported");
}

}  // namespace treadle::models

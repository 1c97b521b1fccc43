#include <treadle/io/case.hpp>
#include <treadle/io/error.hpp>
#include <treadle/io/json.hpp>
#include <treadle/io/npy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::io {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// An entry of an object, of the type that is needed.
const json& entry(const json& object, const char* key, bool (json::*is)() const noexcept, const char* type) {
  const auto found = object.find(key);
  if (found == object.end()) throw Error(std::string("has no '") + key + "'; " + type + " is needed");
  if (!((*found).*is)())
    throw Error(std::string("'") + key + "' is " + found->type_name() + "; " + type + " is needed");
  return *found;
}
const json& object_of(const json& in, const char* key) { return entry(in, key, &json::is_object, "an object"); }
const json& array_of(const json& in, const char* key) { return entry(in, key, &json::is_array, "a list"); }
std::string text_of(const json& in, const char* key) {
  return entry(in, key, &json::is_string, "a string").get<std::string>();
}
double number_of(const json& in, const char* key) {
  const double x = entry(in, key, &json::is_number, "a number").get<double>();
  if (!(x >= 0)) throw Error(std::string("'") + key + "' is negative; a tolerance counts from 0");
  return x;
}
std::vector<std::string> names_of(const json& in, const char* key) {
  std::vector<std::string> names;
  for (const json& name : array_of(in, key)) {
    if (!name.is_string()) throw Error(std::string("'") + key + "' holds " + name.type_name() + "; names are needed");
    names.push_back(name.get<std::string>());
  }
  return names;
}

double float_value(const json& x) {
  if (x.is_number()) return x.get<double>();
  if (x == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (x == "inf") return std::numeric_limits<double>::infinity();
  if (x == "-inf") return -std::numeric_limits<double>::infinity();
  throw Error("data holds " + x.dump().substr(0, 40) + "; a number, \"nan\", \"inf\" or \"-inf\" is needed");
}
std::int64_t integer_value(const json& x) {
  if (x.is_number_integer()) return x.get<std::int64_t>();
  throw Error("data holds " + x.dump().substr(0, 40) + "; an integer is needed");
}
bool bool_value(const json& x) {
  if (x.is_boolean()) return x.get<bool>();
  if (x == 0 || x == 1) return x == 1;
  throw Error("data holds " + x.dump().substr(0, 40) + "; 0 or 1 is needed");
}

template <class T, class F>
Tensor filled(DType dtype, const std::vector<std::int64_t>& shape, const json& data, F value) {
  const std::int64_t n = checked_size(shape, dtype);
  if (static_cast<std::size_t>(n) != data.size())
    throw Error("shape " + shape_text(shape) + " needs " + std::to_string(n) + " elements, there are " +
                std::to_string(data.size()));
  Tensor tensor(dtype, shape);
  std::ranges::transform(data, tensor.as<T>().begin(), value);
  return tensor;
}

Tensor tensor_of(const json& from) {
  if (!from.is_object()) throw Error(std::string("is ") + from.type_name() + "; {shape, dtype, data} is needed");
  std::vector<std::int64_t> shape;
  for (const json& dim : array_of(from, "shape")) shape.push_back(integer_value(dim));
  const json& data = array_of(from, "data");
  const std::string dtype = text_of(from, "dtype");
  if (dtype == "f") return filled<double>(DType::f64, shape, data, float_value);
  if (dtype == "i64") return filled<std::int64_t>(DType::i64, shape, data, integer_value);
  if (dtype == "bool") return filled<bool>(DType::boolean, shape, data, bool_value);
  throw Error("has dtype '" + dtype + "'; f, i64 or bool is needed");
}

/// Puts "where: " before the sentence of an error inside.
template <class F>
auto inside(const std::string& where, F f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(where + ": " + error.what());
  }
}

void check_object(const json& from, const fs::path& path) {
  if (!from.is_object())
    throw Error(path.string() + ": is no case: it holds " + from.type_name() + " instead of an object");
}

Tensor folder_tensor(const fs::path& folder, const std::string& name, bool output) {
  // Names become file names: they stay inside the folder.
  if (name.empty() || name.find('/') != std::string::npos) throw Error("'" + name + "' is no name of a tensor");
  fs::path path = folder / (name + ".npy");
  if (output && !fs::exists(path) && fs::exists(folder / ("expected_" + name + ".npy")))
    path = folder / ("expected_" + name + ".npy");
  if (!fs::exists(path))
    throw Error(std::string("the ") + (output ? "output" : "input") + " '" + name + "' is missing: " + path.string() +
                " does not exist");
  return load_npy(path);
}

Case folder_case(const fs::path& folder) {
  const json from = read_json(folder / "case.json");
  check_object(from, folder / "case.json");
  return inside((folder / "case.json").string(), [&] {
    Case result;
    result.name = fs::weakly_canonical(folder).filename().string();
    result.path = folder;
    result.note = from.value("note", "");
    result.f32 = {number_of(from, "rtol"), number_of(from, "atol")};
    result.f64 = result.f32;
    Call call;
    call.op = text_of(from, "op");
    call.attributes = object_of(from, "attributes");
    for (const std::string& name : names_of(from, "inputs")) call.inputs[name] = folder_tensor(folder, name, false);
    const std::vector<std::string> outputs = names_of(from, "outputs");
    const std::vector<std::string> required =
        from.contains("required_outputs") ? names_of(from, "required_outputs") : outputs;
    for (const std::string& name : required)
      if (std::ranges::find(outputs, name) == outputs.end())
        throw Error("the required output '" + name + "' is not among 'outputs'");
    for (const std::string& name : outputs) {
      const bool needed = std::ranges::find(required, name) != required.end();
      call.outputs.push_back({name, folder_tensor(folder, name, true), std::nullopt, needed});
    }
    result.calls.push_back(std::move(call));
    return result;
  });
}

/// The entry of `tensors` that a call names.
const json& named(const json& tensors, const json& key, const std::string& what) {
  if (!key.is_string()) throw Error(what + " is " + key.type_name() + "; the name of a tensor is needed");
  const auto found = tensors.find(key.get<std::string>());
  if (found == tensors.end())
    throw Error(what + " names the tensor '" + key.get<std::string>() + "', which is missing");
  return *found;
}

Case json_case(const json& from, const fs::path& path) {
  return inside(path.string(), [&] {
    Case result;
    result.path = path;
    result.name = path.stem().string();
    result.note = from.value("description", "");
    result.numeric = from.value("numeric", true);
    const json none = json::object();
    const auto object_or_none = [&](const char* key) -> const json& {
      return !from.contains(key) || from.at(key).is_null() ? none : object_of(from, key);
    };
    const json &inputs = object_or_none("inputs"), &expected = object_or_none("expected");
    if (result.numeric || from.contains("tolerance")) {
      const json& tolerance = object_of(from, "tolerance");
      const json &f32 = object_of(tolerance, "fp32"), &f64 = object_of(tolerance, "fp64");
      result.f32 = {number_of(f32, "rtol"), number_of(f32, "atol")};
      result.f64 = {number_of(f64, "rtol"), number_of(f64, "atol")};
    }
    for (const json& one : array_of(from, "calls")) {
      if (!one.is_object())
        throw Error(std::string("'calls' holds ") + one.type_name() + "; {op, attributes, inputs, outputs} is needed");
      Call call;
      call.op = text_of(one, "op");
      call.attributes = object_of(one, "attributes");
      for (const auto& [parameter, key] : object_of(one, "inputs").items()) {
        const json& found = named(inputs, key, "the input '" + parameter + "' of " + call.op);
        call.inputs[parameter] =
            inside("the input '" + parameter + "' of " + call.op, [&] { return tensor_of(found); });
      }
      for (const auto& [output, key] : object_of(one, "outputs").items()) {
        const std::string what = "the output '" + output + "' of " + call.op;
        const json& found = named(expected, key, what);
        Expected& e = call.outputs.emplace_back();
        e.name = output;
        inside(what, [&] {
          e.want = tensor_of(found);
          if (found.contains("compare"))
            e.where = filled<bool>(DType::boolean, e.want.shape, array_of(found, "compare"), bool_value);
        });
      }
      result.calls.push_back(std::move(call));
    }
    if (const auto op = from.find("op"); !result.numeric && op != from.end() && op->is_string()) {
      result.property.op = op->get<std::string>();
      result.property.attributes = object_or_none("attributes");
    }
    return result;
  });
}

void collect(const fs::path& path, std::vector<fs::path>& found) {
  if (fs::is_regular_file(path)) {
    if (path.extension() == ".json") found.push_back(path);
    return;
  }
  if (!fs::is_directory(path)) return;
  if (fs::exists(path / "case.json")) {
    found.push_back(path);
    return;
  }
  std::vector<fs::path> entries;
  for (const fs::directory_entry& e : fs::directory_iterator(path)) entries.push_back(e.path());
  std::ranges::sort(entries);
  for (const fs::path& e : entries) collect(e, found);
}

}  // namespace

std::vector<fs::path> find_cases(const std::vector<fs::path>& paths) {
  std::vector<fs::path> found;
  for (const fs::path& path : paths) {
    if (!fs::exists(path)) throw Error(path.string() + ": no such file or folder");
    const std::size_t before = found.size();
    if (fs::is_regular_file(path) && path.filename() == "case.json") {
      found.push_back(path.has_parent_path() ? path.parent_path() : fs::path("."));
      continue;
    }
    try {
      collect(path, found);
    } catch (const fs::filesystem_error& error) {
      throw Error(path.string() + ": cannot be read: " + error.code().message());
    }
    if (found.size() == before)
      throw Error(path.string() + ": holds no case; a folder with case.json or a file *.json is needed");
  }
  return found;
}

Case read_case(const json& from, const fs::path& path) {
  try {
    check_object(from, path);
    return json_case(from, path);
  } catch (const json::exception& error) {  // a value of an unexpected type in an optional place
    throw Error(path.string() + ": " + error.what());
  }
}

Case load_case(const fs::path& path) {
  if (!fs::is_directory(path)) return read_case(read_json(path), path);
  try {
    return folder_case(path);
  } catch (const json::exception& error) {
    throw Error(path.string() + ": " + error.what());
  }
}

}  // namespace treadle::io

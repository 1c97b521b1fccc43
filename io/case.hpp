#pragma once
// The two containers of test cases: folders with case.json and .npy files, and JSON files that hold their tensors. Not
// installed: it shows a JSON library's type.

#include <treadle/io/tensor.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace treadle::io {

/// got passes where |got − want| <= atol + rtol·|want|; equal infinities are equal, NaN only where NaN is written.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

struct Expected {
  std::string name;             ///< the op's result
  Tensor want;                  ///< f64 (or as the file has it), i64 or bool
  std::optional<Tensor> where;  ///< bool, the shape of `want`: which elements are compared; absent: all
  bool required = true;         ///< otherwise compared if the op can give it
};

/// One call of an op.
struct Call {
  std::string op;
  nlohmann::json attributes;             ///< an object
  std::map<std::string, Tensor> inputs;  ///< by the op's parameter
  std::vector<Expected> outputs;
};

struct Case {
  std::string name;
  std::filesystem::path path;
  std::string note;
  std::vector<Call> calls;
  bool numeric = true;  ///< false: a property that no generic call can show; `calls` may be empty
  Call property;        ///< where it is not numeric: op and attributes that say which, or an empty op
  Tolerance f32, f64;   ///< for backends that compute in float32, in float64
};

/// The cases at or below the paths, sorted below each: folders that hold case.json, files *.json. Throws Error where a
/// path does not exist or has no case.
std::vector<std::filesystem::path> find_cases(const std::vector<std::filesystem::path>& paths);

/// Reads a case folder or a JSON case. Throws Error with one sentence.
Case load_case(const std::filesystem::path& path);
/// A JSON case that is read already; `path` stands for it in errors.
Case read_case(const nlohmann::json& from, const std::filesystem::path& path);

}  // namespace treadle::io

#pragma once
// Checkpoints of the tests: the golden folders, and files written byte by byte.

#include <treadle/io/npy.hpp>
#include <treadle/models/checkpoint.hpp>

#include <io/safetensors_files.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace treadle::test {

using Tensors = std::map<std::string, io::Tensor>;

inline std::filesystem::path golden(const std::string& model) {
  return std::filesystem::path(TREADLE_TEST_DATA) / "models" / model;
}

/// The .npy files of a folder whose names begin with `prefix`, without it; "": those of no prefix.
inline Tensors arrays_of(const std::filesystem::path& folder, const std::string& prefix) {
  Tensors all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    const bool expected = name.rfind("expected_", 0) == 0;
    if (entry.path().extension() != ".npy" || expected == prefix.empty()) continue;
    all.emplace(name.substr(prefix.size()), io::load_npy(entry.path()));
  }
  return all;
}
inline Tensors inputs_of(const std::filesystem::path& folder) { return arrays_of(folder, ""); }
inline Tensors expected_of(const std::filesystem::path& folder) { return arrays_of(folder, "expected_"); }

inline models::LoadedModel load(const std::filesystem::path& folder, const Tensors& inputs) {
  models::LoadOptions options;
  for (const auto& input : inputs) options.given_inputs.push_back(input.first);
  return models::load_checkpoint(folder, options);
}

inline Tensors run(const std::filesystem::path& folder, const Tensors& inputs) {
  const models::LoadedModel loaded = load(folder, inputs);
  BoundModel model = loaded.bind({.backend = "simd"});
  return models::run_model(model, loaded, inputs);
}

struct RawTensor {
  std::string name, type;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

inline void write_safetensors(const std::filesystem::path& path, const std::vector<RawTensor>& tensors) {
  std::string header = "{", data;
  for (const RawTensor& t : tensors) {
    std::string shape;
    for (const std::int64_t d : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(d);
    const std::size_t at = data.size();
    data.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
    header += (header.size() > 1 ? "," : "") +
              entry(t.name, t.type, shape, std::to_string(at) + "," + std::to_string(data.size()));
  }
  std::ofstream(path, std::ios::binary) << safetensors_file(header + "}", data);
}

}  // namespace treadle::test

#pragma once
// Static models against the same ones from config.json, and golden folders with something changed.

#include "support.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/backends/model.hpp>

#include <algorithm>

namespace treadle::test {

/// |got − want| over 2e-5 + 2e-4·|want|, the largest.
inline double tolerances_apart(const io::Tensor& got, const io::Tensor& want) {
  const io::Tensor a = io::to_f64(got), b = io::to_f64(want);
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.as<double>().size(); ++i) {
    const double x = a.as<double>()[i], y = b.as<double>()[i];
    largest = std::max(largest, std::abs(x - y) / (2e-5 + 2e-4 * std::abs(y)));
    if (!std::isfinite(x)) largest = std::numeric_limits<double>::infinity();
  }
  return largest;
}

inline io::Tensor ids_of(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& ids) {
  io::Tensor t(i32, std::move(shape));
  std::copy(ids.begin(), ids.end(), t.as<std::int32_t>().begin());
  return t;
}

/// A static model gives the bits of the one that is read from config.json.
template <class M>
void static_gives_the_same_bits(const char* name) {
  const Tensors inputs = inputs_of(golden(name));
  const models::LoadedModel loaded = load(golden(name), inputs);
  const models::LoadedParameters parameters = models::load_parameters(M::source.view(), golden(name));
  for (const char* backend : {"reference", "simd", "tbb"}) {
    BoundModel fixed = M::bind(parameters.parameters, {.backend = backend});
    BoundModel dynamic = loaded.bind({.backend = backend});
    const Tensors a = models::run_model(fixed, loaded, inputs), b = models::run_model(dynamic, loaded, inputs);
    BOOST_TEST_CONTEXT(name << " on " << backend) {
      BOOST_REQUIRE_EQUAL(a.size(), b.size());
      for (const auto& [output, tensor] : a) BOOST_TEST((tensor.data == b.at(output).data), output);
    }
  }
}

/// A golden folder whose config.json has one text replaced by another.
struct ChangedConfig {
  Folder folder;

  ChangedConfig(const char* name, const std::string& from, const std::string& to) {
    std::string config = read(golden(name) / "config.json");
    const std::size_t at = config.find(from);
    BOOST_REQUIRE(at != std::string::npos);
    config.replace(at, from.size(), to);
    folder.write("config.json", config);
    std::filesystem::copy_file(golden(name) / "model.safetensors", folder.path / "model.safetensors");
  }
  const std::filesystem::path& path() const { return folder.path; }
};

/// Whether loading, with these options, fails with this sentence.
inline bool refuses(const std::filesystem::path& folder, const std::string& sentence,
                    const models::LoadOptions& options = {}) {
  try {
    models::load_checkpoint(folder, options);
  } catch (const Error& e) {
    BOOST_TEST_INFO(e.what());
    return std::string(e.what()).find(sentence) != std::string::npos;
  }
  return false;
}

}  // namespace treadle::test

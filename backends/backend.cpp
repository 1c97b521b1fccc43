#include <treadle/backends/backend.hpp>
#include <treadle/backends/error.hpp>

namespace treadle {

std::span<const BackendInfo> backends() {
  static constexpr BackendInfo list[] = {
      {"reference", "plain formulas, the oracle of the others", false, false, true},
      {"simd", "vector kernels, one thread", true, false, false},
      {"tbb", "the same kernels over oneTBB threads", true, true, false},
  };
  return list;
}

std::string backend_names() {
  std::string text;
  for (const BackendInfo& b : backends()) text += (text.empty() ? "" : ", ") + std::string(b.name);
  return text;
}

const BackendInfo& find_backend(std::string_view name) {
  for (const BackendInfo& b : backends())
    if (b.name == name) return b;
  throw Error("there is no backend '" + std::string(name) + "'; there are " + backend_names());
}

}  // namespace treadle

#pragma once
// The backends inside the library, by name.

#include <span>
#include <string>
#include <string_view>

namespace treadle {

struct BackendInfo {
  std::string_view name;
  std::string_view description;
  bool has_isas = false;  ///< runs the kernels of an ISA
  bool threads = false;   ///< runs on several threads
  bool float64 = false;   ///< can compute in double
};

/// reference, simd, tbb.
std::span<const BackendInfo> backends();

/// Throws Error with the names that there are.
const BackendInfo& find_backend(std::string_view name);

/// "reference, simd, tbb"
std::string backend_names();

}  // namespace treadle

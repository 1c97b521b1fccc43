#pragma once
// What the numbers were measured on, and the process's own memory.

#include <cstdint>
#include <optional>
#include <string>

namespace treadle::cli {

struct Machine {
  std::string cpu;  ///< "Intel(R) Xeon(R) Processor"
  std::string isa;  ///< the best that can run here
  int cores = 1;    ///< that this process may use
};
Machine machine();

std::string version();
std::string compiler();
std::string commit();
/// UTC, "2026-01-31T12:00:00Z"
std::string date();

/// Bytes that can be allocated without swapping; 0 if unknown.
double memory_available();

/// Resident memory of this process now; none where /proc does not tell.
std::optional<std::int64_t> resident_bytes();
/// Forgets the largest resident size so far, so that `peak_resident_bytes` counts from now. False if the system has no
/// way to.
bool reset_peak_resident();
std::optional<std::int64_t> peak_resident_bytes();

/// Size in bytes of a data cache level (1, 2, 3); 0 if unknown.
std::int64_t cache_bytes(int level);

}  // namespace treadle::cli

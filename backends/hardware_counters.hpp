#pragma once
// Cycles, instructions and cache misses of the calling thread, from the CPU, through Linux's perf_event_open.

#include <treadle/backends/trace.hpp>

#include <string>

namespace treadle {

/// Opens the counters of this thread if they are not open yet. Says why it could not; empty: they count.
std::string open_hardware_counters();

/// Of this thread, which opens its counters at its first call. Not known where the system refuses.
HardwareCounts read_hardware_counters();

}  // namespace treadle

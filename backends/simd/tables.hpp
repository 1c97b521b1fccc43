#pragma once
// The tables by name; which of them are compiled is decided by cmake/isa.cmake.

#include <treadle/backends/kernel.hpp>

namespace treadle::kernel {

extern const Table table_portable, table_avx2, table_avx512, table_neon64;

}  // namespace treadle::kernel

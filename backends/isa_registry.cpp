// Which tables this binary holds, and which of them this CPU runs.

#include <treadle/backends/simd/tables.hpp>

#include <cstdlib>
#include <cstring>

namespace treadle::kernel {
namespace {

// The compiler's own check also asks whether the operating system saves the registers.
bool cpu_has_avx2() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}
bool cpu_has_avx512() {
#if defined(__x86_64__)
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

struct Entry {
  IsaInfo info;
  const Table* table;
};

struct Registry {
  Entry entries[isa_count];
  IsaInfo infos[isa_count];
  int best = 0;  // after the cap

  Registry() {
    const Table* tables[isa_count] = {};
#if defined(TREADLE_ISA_AVX512)
    tables[0] = &table_avx512;
#endif
#if defined(TREADLE_ISA_AVX2)
    tables[1] = &table_avx2;
#endif
#if defined(__aarch64__)
    constexpr const char* names[isa_count] = {"avx512", "neon64", "portable"};
    constexpr bool neon = true;
#if defined(TREADLE_ISA_NEON64)
    tables[1] = &table_neon64;
#endif
#else
    constexpr const char* names[isa_count] = {"avx512", "avx2", "portable"};
    constexpr bool neon = false;
#endif
#if defined(TREADLE_ISA_PORTABLE)
    tables[2] = &table_portable;
#endif
    const bool has[isa_count] = {cpu_has_avx512(), neon || cpu_has_avx2(), true};
    for (int i = 0; i < isa_count; ++i) {
      infos[i] = {names[i], tables[i] != nullptr, has[i]};
      entries[i] = {infos[i], has[i] ? tables[i] : nullptr};
    }
    // The cap names the best ISA that may be used; what is unknown caps nothing.
    int first = 0;
    if (const char* cap = std::getenv("TREADLE_ISA")) {
      for (int i = 0; i < isa_count; ++i)
        if (std::strcmp(cap, names[i]) == 0) first = i;
    }
    best = -1;
    for (int i = first; i < isa_count && best < 0; ++i)
      if (entries[i].table != nullptr) best = i;
    for (int i = first; i-- > 0 && best < 0;)  // nothing at or below the cap is compiled
      if (entries[i].table != nullptr) best = i;
  }
};

const Registry& registry() {
  static const Registry r;
  return r;
}

}  // namespace

const Table* find_table(const char* isa) {
  for (const Entry& e : registry().entries)
    if (std::strcmp(e.info.name, isa) == 0) return e.table;
  return nullptr;
}

const Table& best_table() {
  const Registry& r = registry();
  if (r.best < 0) std::abort();  // built for another CPU altogether
  return *r.entries[r.best].table;
}

const IsaInfo* isa_list() { return registry().infos; }

}  // namespace treadle::kernel

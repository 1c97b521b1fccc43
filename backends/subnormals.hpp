#pragma once
// Kernels take and give subnormal numbers as zeros: many CPUs compute with them far slower, and a model whose
// activations fade away would stall.

#include <cstdint>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace treadle {

/// While one lives, this thread's floating-point unit flushes subnormal operands and results to zero; then it is as
/// before.
class FlushSubnormals {
 public:
  FlushSubnormals() : before_(mode()) { set(before_ | bits); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;
  ~FlushSubnormals() { set(before_); }

 private:
#if defined(__SSE__)
  static constexpr std::uint64_t bits = 0x8040;  // flush to zero, and denormals are zero
  static std::uint64_t mode() { return _mm_getcsr(); }
  static void set(std::uint64_t m) { _mm_setcsr(static_cast<std::uint32_t>(m)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t bits = std::uint64_t{1} << 24;  // FZ
  static std::uint64_t mode() {
    std::uint64_t m;
    asm volatile("mrs %0, fpcr" : "=r"(m));
    return m;
  }
  static void set(std::uint64_t m) { asm volatile("msr fpcr, %0" : : "r"(m)); }
#else
  static constexpr std::uint64_t bits = 0;
  static std::uint64_t mode() { return 0; }
  static void set(std::uint64_t) {}
#endif
  std::uint64_t before_;
};

}  // namespace treadle

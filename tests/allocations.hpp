#pragma once
// Replaces operator new of a test program, which counts: include it in one file of a program.

#include <atomic>
#include <cstdlib>
#include <new>

namespace treadle::test {

inline std::atomic<long> allocations{0};             ///< so far
inline std::atomic<std::size_t> largest_request{0};  ///< bytes; a test sets it to 0 to begin

inline void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  std::size_t before = largest_request.load(std::memory_order_relaxed);
  while (bytes > before && !largest_request.compare_exchange_weak(before, bytes, std::memory_order_relaxed)) {
  }
  void* p = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
// Not inlined: g++ would find that free() gets what operator new gave.
[[gnu::noinline]] inline void released(void* p) { std::free(p); }

}  // namespace treadle::test

void* operator new(std::size_t n) { return treadle::test::counted(n, 16); }
void* operator new[](std::size_t n) { return treadle::test::counted(n, 16); }
void* operator new(std::size_t n, std::align_val_t a) { return treadle::test::counted(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) {
  return treadle::test::counted(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { treadle::test::released(p); }
void operator delete[](void* p) noexcept { treadle::test::released(p); }
void operator delete(void* p, std::size_t) noexcept { treadle::test::released(p); }
void operator delete[](void* p, std::size_t) noexcept { treadle::test::released(p); }
void operator delete(void* p, std::align_val_t) noexcept { treadle::test::released(p); }
void operator delete[](void* p, std::align_val_t) noexcept { treadle::test::released(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { treadle::test::released(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { treadle::test::released(p); }

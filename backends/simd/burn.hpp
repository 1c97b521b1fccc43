#pragma once
// The yardstick: independent fused multiply-adds on registers only.

#include <treadle/backends/simd/block.hpp>

namespace treadle::simd {

template <class Isa>
double fma_burn(std::int64_t iterations) {
  constexpr int chains = 12;  // more than latency × ports of any CPU we know, and it fits 16 registers
  Vec<Isa> x[chains], a(0.999999f), b(1e-6f);
  unroll<chains>([&](auto i) { x[i] = Vec<Isa>(static_cast<float>(i)); });
  pin(a);
  pin(b);
  for (std::int64_t n = 0; n < iterations; ++n)
    unroll<chains>([&](auto i) __attribute__((always_inline)) { x[i] = fma(x[i], a, b); });
  Vec<Isa> sum(0.0f);
  unroll<chains>([&](auto i) { sum += x[i]; });
  volatile float sink = reduce_add(sum);  // what nobody reads the compiler would remove
  static_cast<void>(sink);
  return 2.0 * chains * Vec<Isa>::width * static_cast<double>(iterations);
}

}  // namespace treadle::simd

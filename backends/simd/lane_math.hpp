#pragma once
// The functions of traced expressions on arrays, by the same definitions as the kernels'.

#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/score_tile.hpp>

namespace treadle::simd {

template <class Isa>
struct VectorLaneMath {
  static constexpr int unit = Vec<Isa>::width < 8 ? 8 : Vec<Isa>::width;

  template <class F>
  static void map(const float* x, float* out, int n, F f) {
    constexpr int width = Vec<Isa>::width;
    int i = 0;
    for (; i + width <= n; i += width) f(Vec<Isa>::load(x + i)).store(out + i);
    if (i < n) f(Vec<Isa>::load(x + i, n - i)).store(out + i, n - i);
  }
  static void exp(const float* x, float* out, int n) {
    map(x, out, n, [](Vec<Isa> a) { return simd::exp(a); });
  }
  static void log(const float* x, float* out, int n) {
    map(x, out, n, [](Vec<Isa> a) { return simd::log(a); });
  }
  static void tanh(const float* x, float* out, int n) {
    map(x, out, n, [](Vec<Isa> a) { return simd::tanh(a); });
  }
  static void sqrt(const float* x, float* out, int n) {
    map(x, out, n, [](Vec<Isa> a) { return simd::sqrt(a); });
  }
  static void sigmoid(const float* x, float* out, int n) {
    map(x, out, n, [](Vec<Isa> a) { return simd::sigmoid(a); });
  }
  static void divide(const float* x, float divisor, float* out, int n) {
    map(x, out, n, [divisor](Vec<Isa> a) { return simd::divide(a, divisor); });
  }
  static void fma(const float* x, const float* y, const float* z, float* out) {
    using V = Vec<Isa>;
    for (int i = 0; i < unit; i += V::width) simd::fma(V::load(x + i), V::load(y + i), V::load(z + i)).store(out + i);
  }
};

template <>
struct LaneMath<portable> : VectorLaneMath<portable> {};
#if defined(__AVX2__) && defined(__FMA__)
template <>
struct LaneMath<avx2> : VectorLaneMath<avx2> {};
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
template <>
struct LaneMath<avx512> : VectorLaneMath<avx512> {};
#endif
#if defined(__aarch64__)
template <>
struct LaneMath<neon64> : VectorLaneMath<neon64> {};
#endif

}  // namespace treadle::simd

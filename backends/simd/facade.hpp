#pragma once
// Vectors of floats with an explicit ISA tag: the only door through which kernels reach the instruction set.
//
// `Vec<Isa>` is a thin value over `Ops<Isa>`, which each facade_*.hpp supplies: arithmetic from xsimd, and what xsimd
// lacks, or does differently between its versions, from intrinsics. A kernel is a template over the tag and is compiled
// once per ISA, with that ISA's flags (cmake/isa.cmake); nothing here looks at a default architecture.
//
// The numeric contract: nothing is fused but `fma`. It is one rounding on avx2, avx512 and neon64. The portable
// baseline has no such instruction and rounds twice (x·y, then + z), in every function of that ISA alike.

#include <treadle/backends/simd/facade_portable.hpp>
#if defined(__AVX2__) && defined(__FMA__)
#include <treadle/backends/simd/facade_avx2.hpp>
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <treadle/backends/simd/facade_avx512.hpp>
#endif
#if defined(__aarch64__)
#include <treadle/backends/simd/facade_neon64.hpp>
#endif

#include <cstdint>

namespace treadle::simd {

/// Truth values of the lanes of a Vec.
template <class Isa>
struct Mask {
  typename Ops<Isa>::Mask m;
};

template <class Isa>
struct Vec {
  using O = Ops<Isa>;
  static constexpr int width = O::width;

  typename O::Reg r;

  Vec() = default;
  Vec(typename O::Reg x) : r(x) {}
  Vec(float x) : r(O::set(x)) {}  ///< every lane

  static Vec load(const float* p) { return O::load(p); }
  /// The first n lanes from memory, 0 ≤ n ≤ width; the others are 0 and their memory is not touched.
  static Vec load(const float* p, int n) { return O::load_partial(p, n); }
  /// Four floats each from p, p + stride, p + 2·stride, …, side by side.
  static Vec load_fours(const float* p, std::int64_t stride) {
    if constexpr (width == 4)
      return O::load(p);
    else
      return O::load_fours(p, stride);
  }
  void store(float* p) const { O::store(p, r); }
  void store(float* p, int n) const { O::store_partial(p, r, n); }

  friend Vec operator+(Vec a, Vec b) { return O::add(a.r, b.r); }
  friend Vec operator-(Vec a, Vec b) { return O::sub(a.r, b.r); }
  friend Vec operator*(Vec a, Vec b) { return O::mul(a.r, b.r); }
  friend Vec operator/(Vec a, Vec b) { return O::div(a.r, b.r); }
  friend Vec operator-(Vec a) { return O::flip_sign(a.r); }
  friend Mask<Isa> operator<(Vec a, Vec b) { return {O::less(a.r, b.r)}; }
  friend Mask<Isa> operator<=(Vec a, Vec b) { return {O::less_equal(a.r, b.r)}; }
  friend Mask<Isa> operator==(Vec a, Vec b) { return {O::equal(a.r, b.r)}; }
  /// True also for NaN, as for scalars.
  friend Mask<Isa> operator!=(Vec a, Vec b) { return {O::not_equal(a.r, b.r)}; }

  Vec& operator+=(Vec b) { return *this = *this + b; }
};

/// x·y + z by the numeric contract.
template <class Isa>
Vec<Isa> fma(Vec<Isa> x, Vec<Isa> y, Vec<Isa> z) {
  return Ops<Isa>::fma(x.r, y.r, z.r);
}
/// a > b ? a : b. If one is NaN the result is b: the order of the operands says whether NaN passes.
template <class Isa>
Vec<Isa> max(Vec<Isa> a, Vec<Isa> b) {
  return Ops<Isa>::max(a.r, b.r);
}
/// a < b ? a : b, with the same rule.
template <class Isa>
Vec<Isa> min(Vec<Isa> a, Vec<Isa> b) {
  return Ops<Isa>::min(a.r, b.r);
}
template <class Isa>
Vec<Isa> abs(Vec<Isa> a) {
  return Ops<Isa>::abs(a.r);
}
/// |a| with the sign of s.
template <class Isa>
Vec<Isa> copy_sign(Vec<Isa> a, Vec<Isa> s) {
  return Ops<Isa>::copy_sign(a.r, s.r);
}
template <class Isa>
Vec<Isa> sqrt(Vec<Isa> a) {
  return Ops<Isa>::sqrt(a.r);
}
/// To the nearest integer, ties to even.
template <class Isa>
Vec<Isa> nearest(Vec<Isa> a) {
  return Ops<Isa>::nearest(a.r);
}
/// 2ⁿ for integers n in [−126, 127]; 0 for n = −127.
template <class Isa>
Vec<Isa> power_of_two(Vec<Isa> n) {
  return Ops<Isa>::power_of_two(n.r);
}

/// m and e with a = m · 2ᵉ and m in [√½, √2), for normal a > 0; for other a some numbers.
template <class Isa>
Vec<Isa> split_exponent(Vec<Isa> a, Vec<Isa>& e) {
  return Ops<Isa>::split_exponent(a.r, e.r);
}

/// m ? a : b. Nothing of the lane that was not chosen remains, NaN included.
template <class Isa>
Vec<Isa> select(Mask<Isa> m, Vec<Isa> a, Vec<Isa> b) {
  return Ops<Isa>::select(m.m, a.r, b.r);
}
/// Lane i is bit i.
template <class Isa>
Mask<Isa> mask_from_bits(std::uint64_t bits) {
  return {Ops<Isa>::mask_from_bits(bits)};
}
template <class Isa>
bool any(Mask<Isa> m) {
  return Ops<Isa>::any(m.m);
}

/// Keeps a broadcast in its register, so that no compiler folds it into several loads.
template <class Isa>
[[gnu::always_inline]] inline void pin(Vec<Isa>& a) {
  Ops<Isa>::pin(a.r);
}

/// Sum over the lanes, halves added pairwise: one order for each width.
template <class Isa>
float reduce_add(Vec<Isa> a) {
  float lanes[Vec<Isa>::width];
  a.store(lanes);
  for (int half = Vec<Isa>::width / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}
/// Largest lane; NaN is ignored unless it is everywhere.
template <class Isa>
float reduce_max(Vec<Isa> a) {
  float lanes[Vec<Isa>::width];
  a.store(lanes);
  float largest = lanes[0];
  for (int i = 1; i < Vec<Isa>::width; ++i) largest = lanes[i] > largest || largest != largest ? lanes[i] : largest;
  return largest;
}

}  // namespace treadle::simd

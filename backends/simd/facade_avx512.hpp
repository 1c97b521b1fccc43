#pragma once
// AVX-512 (F, CD, DQ, BW, VL): sixteen lanes. `fma` is an intrinsic since xsimd 8.1 writes x * y + z for this ISA.

#include <treadle/backends/simd/facade_portable.hpp>
#include <treadle/backends/simd/facade_xsimd.hpp>

#include <immintrin.h>

namespace treadle::simd {

struct avx512 {
  static constexpr const char* name = "avx512";
  static constexpr int sign_lanes = 16;
  static std::uint64_t sign_bits(const std::int32_t* lanes) { return _mm512_movepi32_mask(_mm512_loadu_si512(lanes)); }
};

template <>
struct Ops<avx512> : XsimdOps<xsimd::avx512bw> {
  using Mask = __mmask16;
  static constexpr int registers = 32;
  static constexpr bool fuses = true;

  static Reg load_fours(const float* p, std::int64_t stride) {
    Reg r = _mm512_castps128_ps512(_mm_loadu_ps(p));
    r = _mm512_insertf32x4(r, _mm_loadu_ps(p + stride), 1);
    r = _mm512_insertf32x4(r, _mm_loadu_ps(p + 2 * stride), 2);
    return _mm512_insertf32x4(r, _mm_loadu_ps(p + 3 * stride), 3);
  }
  static Reg load_partial(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_partial(float* p, Reg r, int n) { _mm512_mask_storeu_ps(p, first(n), r); }

  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg flip_sign(Reg a) { return _mm512_xor_ps(a, sign()); }
  static Reg abs(Reg a) { return _mm512_andnot_ps(sign(), a); }
  static Reg copy_sign(Reg a, Reg s) { return _mm512_or_ps(_mm512_andnot_ps(sign(), a), _mm512_and_ps(sign(), s)); }
  static Reg nearest(Reg a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg power_of_two(Reg n) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
  }
  /// a·2ⁿ for integers n, rounded once.
  static Reg scale(Reg a, Reg n) { return _mm512_scalef_ps(a, n); }
  /// x − ⌊x⌋, in [0, 1).
  static Reg fraction(Reg x) { return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  /// p·2^⌊x⌋, or 0 where x < −126 (NaN passes): the last step of exp2 in one instruction.
  static Reg scale_or_flush(Reg p, Reg x) {
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ), p, x);
  }
  /// Which of sixteen intervals of [1.5, 6) x is in, by the lowest bit of its exponent and three of its fraction.
  static __m512i interval(Reg x) { return _mm512_srli_epi32(_mm512_castps_si512(x), 20); }
  /// table[i mod 16] in every lane.
  static Reg pick(const float* table, __m512i i) { return _mm512_permutexvar_ps(i, _mm512_load_ps(table)); }
  static Reg split_exponent(Reg a, Reg& e) {
    const __m512i half = _mm512_set1_epi32(0x3f3504f3);  // √½
    const __m512i i = _mm512_sub_epi32(_mm512_castps_si512(a), half);
    e = _mm512_cvtepi32_ps(_mm512_srai_epi32(i, 23));
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_and_si512(i, _mm512_set1_epi32(0x7fffff)), half));
  }

  static Mask less(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Mask less_equal(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  static Mask equal(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Mask not_equal(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
  static Reg select(Mask m, Reg a, Reg b) { return _mm512_mask_blend_ps(m, b, a); }
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Mask mask_from_bits(std::uint64_t bits) { return static_cast<Mask>(bits); }
  static bool any(Mask m) { return m != 0; }
  static void pin(Reg& a) { asm("" : "+v"(a)); }

 private:
  static Reg sign() { return _mm512_set1_ps(-0.0f); }
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
};

}  // namespace treadle::simd

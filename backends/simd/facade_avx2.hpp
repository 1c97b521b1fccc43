#pragma once
// AVX2 with FMA: eight lanes.

#include <treadle/backends/simd/facade_portable.hpp>
#include <treadle/backends/simd/facade_xsimd.hpp>

#include <immintrin.h>

namespace treadle::simd {

struct avx2 {
  static constexpr const char* name = "avx2";
  static constexpr int sign_lanes = 8;
  static std::uint64_t sign_bits(const std::int32_t* lanes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(bits)));
  }
};

template <>
struct Ops<avx2> : XsimdOps<xsimd::fma3<xsimd::avx2>> {
  using Mask = __m256;
  static constexpr int registers = 16;
  static constexpr bool fuses = true;

  static Reg load_fours(const float* p, std::int64_t stride) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + stride), 1);
  }
  static Reg load_partial(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  static void store_partial(float* p, Reg r, int n) { _mm256_maskstore_ps(p, first(n), r); }

  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg flip_sign(Reg a) { return _mm256_xor_ps(a, sign()); }
  static Reg abs(Reg a) { return _mm256_andnot_ps(sign(), a); }
  static Reg copy_sign(Reg a, Reg s) { return _mm256_or_ps(_mm256_andnot_ps(sign(), a), _mm256_and_ps(sign(), s)); }
  static Reg nearest(Reg a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg power_of_two(Reg n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  static Reg split_exponent(Reg a, Reg& e) {
    const __m256i half = _mm256_set1_epi32(0x3f3504f3);  // √½
    const __m256i i = _mm256_sub_epi32(_mm256_castps_si256(a), half);
    e = _mm256_cvtepi32_ps(_mm256_srai_epi32(i, 23));
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_and_si256(i, _mm256_set1_epi32(0x7fffff)), half));
  }

  static Mask less(Reg a, Reg b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static Mask less_equal(Reg a, Reg b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  static Mask equal(Reg a, Reg b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static Mask not_equal(Reg a, Reg b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
  static Reg select(Mask m, Reg a, Reg b) { return _mm256_blendv_ps(b, a, m); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Mask mask_from_bits(std::uint64_t bits) {
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits & 255u));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, lane), lane));
  }
  static bool any(Mask m) { return _mm256_movemask_ps(m) != 0; }
  static void pin(Reg& a) { asm("" : "+x"(a)); }

 private:
  static Reg sign() { return _mm256_set1_ps(-0.0f); }
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace treadle::simd

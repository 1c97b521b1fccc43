#pragma once
// AArch64 NEON: four lanes.

#include <treadle/backends/simd/facade_portable.hpp>
#include <treadle/backends/simd/facade_xsimd.hpp>

#include <arm_neon.h>

namespace treadle::simd {

struct neon64 {
  static constexpr const char* name = "neon64";
};

template <>
struct Ops<neon64> : XsimdOps<xsimd::neon64> {
  using Mask = uint32x4_t;
  static constexpr int registers = 32;
  static constexpr bool fuses = true;

  static Reg load_partial(const float* p, int n) {
    float lanes[4] = {};
    for (int i = 0; i < n; ++i) lanes[i] = p[i];
    return vld1q_f32(lanes);
  }
  static void store_partial(float* p, Reg r, int n) {
    float lanes[4];
    vst1q_f32(lanes, r);
    for (int i = 0; i < n; ++i) p[i] = lanes[i];
  }

  static Reg fma(Reg a, Reg b, Reg c) { return vfmaq_f32(c, a, b); }
  static Reg flip_sign(Reg a) { return vnegq_f32(a); }
  static Reg abs(Reg a) { return vabsq_f32(a); }
  static Reg copy_sign(Reg a, Reg s) { return vbslq_f32(vdupq_n_u32(0x80000000u), s, a); }
  static Reg nearest(Reg a) { return vrndnq_f32(a); }
  static Reg power_of_two(Reg n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
  static Reg split_exponent(Reg a, Reg& e) {
    const int32x4_t half = vdupq_n_s32(0x3f3504f3);  // √½
    const int32x4_t i = vsubq_s32(vreinterpretq_s32_f32(a), half);
    e = vcvtq_f32_s32(vshrq_n_s32(i, 23));
    return vreinterpretq_f32_s32(vaddq_s32(vandq_s32(i, vdupq_n_s32(0x7fffff)), half));
  }

  static Mask less(Reg a, Reg b) { return vcltq_f32(a, b); }
  static Mask less_equal(Reg a, Reg b) { return vcleq_f32(a, b); }
  static Mask equal(Reg a, Reg b) { return vceqq_f32(a, b); }
  static Mask not_equal(Reg a, Reg b) { return vmvnq_u32(vceqq_f32(a, b)); }
  static Reg select(Mask m, Reg a, Reg b) { return vbslq_f32(m, a, b); }
  static Reg max(Reg a, Reg b) { return select(less(b, a), a, b); }
  static Reg min(Reg a, Reg b) { return select(less(a, b), a, b); }
  static Mask mask_from_bits(std::uint64_t bits) {
    const std::uint32_t lanes[4] = {1, 2, 4, 8};
    const Mask lane = vld1q_u32(lanes);
    return vtstq_u32(vdupq_n_u32(static_cast<std::uint32_t>(bits & 15u)), lane);
  }
  static bool any(Mask m) { return vmaxvq_u32(m) != 0; }
  static void pin(Reg&) {}
};

}  // namespace treadle::simd

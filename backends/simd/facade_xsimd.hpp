#pragma once
// What every ISA takes from xsimd: plain arithmetic, which is the same in its versions 8.1 to 13.

#include <xsimd/xsimd.hpp>

namespace treadle::simd {

template <class Arch>
struct XsimdOps {
  using Batch = xsimd::batch<float, Arch>;
  using Reg = typename Batch::register_type;
  static constexpr int width = static_cast<int>(Batch::size);

  static Reg set(float x) { return Batch(x); }
  static Reg load(const float* p) { return Batch::load_unaligned(p); }
  static void store(float* p, Reg r) { Batch(r).store_unaligned(p); }
  static Reg add(Reg a, Reg b) { return Batch(a) + Batch(b); }
  static Reg sub(Reg a, Reg b) { return Batch(a) - Batch(b); }
  static Reg mul(Reg a, Reg b) { return Batch(a) * Batch(b); }
  static Reg div(Reg a, Reg b) { return Batch(a) / Batch(b); }
  static Reg sqrt(Reg a) { return xsimd::sqrt(Batch(a)); }
};

}  // namespace treadle::simd

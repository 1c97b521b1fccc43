#pragma once
// The baseline: four lanes in the compiler's own vectors, which every CPU has in some form.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace treadle::simd {

struct portable {
  static constexpr const char* name = "portable";
};

template <class Isa>
struct Ops;

template <>
struct Ops<portable> {
  using Reg [[gnu::vector_size(16)]] = float;
  using Mask [[gnu::vector_size(16)]] = std::int32_t;
  static constexpr int width = 4;
  static constexpr int registers = 16;
  static constexpr bool fuses = false;  // fma rounds twice

  static Reg set(float x) { return Reg{x, x, x, x}; }
  static Reg load(const float* p) {
    Reg r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static Reg load_partial(const float* p, int n) {
    Reg r{};
    for (int i = 0; i < width; ++i)
      if (i < n) r[i] = p[i];
    return r;
  }
  static void store(float* p, Reg r) { std::memcpy(p, &r, sizeof r); }
  static void store_partial(float* p, Reg r, int n) {
    for (int i = 0; i < width; ++i)  // bounded by the width, or g++ sees reads past the vector
      if (i < n) p[i] = r[i];
  }

  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg flip_sign(Reg a) { return number(integer(a) ^ sign_bits()); }
  static Reg abs(Reg a) { return number(integer(a) & ~sign_bits()); }
  static Reg copy_sign(Reg a, Reg s) { return number((integer(a) & ~sign_bits()) | (integer(s) & sign_bits())); }
  static Reg sqrt(Reg a) { return Reg{std::sqrt(a[0]), std::sqrt(a[1]), std::sqrt(a[2]), std::sqrt(a[3])}; }
  static Reg nearest(Reg a) {
    // Adding and taking away 2²³ with a's sign rounds to even; numbers from 2²³ on are integers already (and NaN
    // stays).
    const Reg big = copy_sign(set(8388608.0f), a);
    return select(less(abs(a), set(8388608.0f)), copy_sign((a + big) - big, a), a);
  }
  static Reg power_of_two(Reg n) {
    // 2²³ + 127 + n has 127 + n in its lowest bits.
    return number(integer(n + set(8388608.0f + 127.0f)) << 23);
  }
  /// Subtracting the bits of √½ leaves the exponent above bit 23 and the mantissa, counted from √½, below.
  static Reg split_exponent(Reg a, Reg& e) {
    const Mask i = integer(a) - sqrt_half;
    e = __builtin_convertvector(i >> 23, Reg);
    return number((i & 0x7fffff) + sqrt_half);
  }
  static constexpr std::int32_t sqrt_half = 0x3f3504f3;

  static Mask less(Reg a, Reg b) { return a < b; }
  static Mask less_equal(Reg a, Reg b) { return a <= b; }
  static Mask equal(Reg a, Reg b) { return a == b; }
  static Mask not_equal(Reg a, Reg b) { return a != b; }
  static Reg select(Mask m, Reg a, Reg b) { return number((integer(a) & m) | (integer(b) & ~m)); }
  static Reg max(Reg a, Reg b) { return select(less(b, a), a, b); }
  static Reg min(Reg a, Reg b) { return select(less(a, b), a, b); }
  static Mask mask_from_bits(std::uint64_t bits) {
    const auto b = static_cast<std::int32_t>(bits & 15u);
    return (Mask{b, b, b, b} & Mask{1, 2, 4, 8}) != Mask{0, 0, 0, 0};
  }
  static bool any(Mask m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
  static void pin(Reg&) {}

 private:
  static Mask integer(Reg a) { return std::bit_cast<Mask>(a); }
  static Reg number(Mask m) { return std::bit_cast<Reg>(m); }
  static Mask sign_bits() {
    const std::int32_t s = INT32_MIN;
    return Mask{s, s, s, s};
  }
};

}  // namespace treadle::simd

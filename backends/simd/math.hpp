#pragma once
// exp, log, tanh, erf and what is made of them. Each has one definition, used by every kernel and evaluator of an ISA.
//
// Largest errors in units of the last place, measured against float64 by tests/kernels/rows_test.cpp:
//   exp 1.5 (subnormal results included)   log 1.0   tanh 2.5   erf 2.5   sigmoid 3.5   softplus 2.5   elu 1.5

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/facade.hpp>
#include <treadle/backends/simd/tanh_table.hpp>

#include <limits>

namespace treadle::simd {

/// c0 + x·(c1 + x·(…)), Horner.
template <class Isa, class... Rest>
Vec<Isa> polynomial(Vec<Isa> x, float c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return Vec<Isa>(c0);
  } else {
    return fma(x, polynomial(x, rest...), Vec<Isa>(c0));
  }
}

/// x / divisor, whose reciprocal must be a normal number; better than by an instruction that takes sixteen cycles. The
/// quotient by the rounded reciprocal and one correction: rounded like a division (Markstein 1990) but where |x| is so
/// small that the rest of the first quotient vanishes.
template <class Isa>
[[gnu::always_inline]] inline Vec<Isa> divide(Vec<Isa> x, float divisor) {
  using V = Vec<Isa>;
  constexpr float largest = std::numeric_limits<float>::max();
  const float size = divisor < 0 ? -divisor : divisor;
  if (!Ops<Isa>::fuses || !(size > 1e-30f && size < 1e30f)) return x / V(divisor);
  const V reciprocal(1.0f / divisor), q = x * reciprocal;
  const V rest = max(fma(q, V(-divisor), x), V(-largest));  // not NaN where q is infinite
  return fma(rest, reciprocal, q);
}

/// eˣ: overflows to inf above 88.72, runs through the subnormals to 0, NaN stays. Cody and Waite's reduction, Cephes'
/// polynomial.
template <class Isa>
Vec<Isa> exp(Vec<Isa> x_in) {
  using V = Vec<Isa>;
  const V x = min(V(89.0f), max(V(-104.0f), x_in));
  const V n = nearest(x * V(1.44269504f));
  // The first part of ln 2 has few bits, so that n·part is exact and the reduction needs no fused operation.
  const V r = fma(n, V(2.12194440e-4f), fma(n, V(-0.693359375f), x));
  const V p = polynomial(r, 5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f, 1.3981999507e-3f,
                         1.9875691500e-4f);
  const V e = fma(p, r * r, r) + V(1.0f);
  if constexpr (requires(V v) { Ops<Isa>::scale(v.r, v.r); }) {
    return Ops<Isa>::scale(e.r, n.r);
  } else {
    const V half = nearest(n * V(0.5f));  // two steps reach 2¹²⁸ and 2⁻¹⁵⁰
    return e * power_of_two(half) * power_of_two(n - half);
  }
}

/// 2ˣ for x ≤ 127, 0 where x < −126 (also −inf), NaN stays. What attention takes its weights from: no subnormal ever
/// appears. The polynomials are minimax with 1 at 0, relative error 2.0e-9.
template <class Isa>
[[gnu::always_inline]] inline Vec<Isa> exp2_flushed(Vec<Isa> x_in) {
  using V = Vec<Isa>;
  if constexpr (requires(V v) { Ops<Isa>::scale_or_flush(v.r, v.r); }) {
    const V p =
        polynomial(V(Ops<Isa>::fraction(x_in.r)), 1.0f, 0.6931470632553101f, 0.2402293086051941f, 0.055485282093286514f,
                   0.009675451554358006f, 0.0012467845808714628f, 0.0002161291631637141f);
    return Ops<Isa>::scale_or_flush(p.r, x_in.r);
  } else {
    const V x = select(x_in < V(-126.0f), V(-127.0f), x_in);
    const V n = nearest(x);
    const V p = polynomial(x - n, 1.0f, 0.6931471824645996f, 0.24022647738456726f, 0.055503323674201965f,
                           0.00961843691766262f, 0.0013398873852565885f, 0.00015353361959569156f);
    return p * power_of_two(n);
  }
}

/// log x for normal x > 0: x = m · 2ᵉ with m around 1, and Cephes' polynomial for log m.
template <class Isa>
Vec<Isa> log_of_normal(Vec<Isa> x) {
  using V = Vec<Isa>;
  V e;
  const V f = split_exponent(x, e) - V(1.0f), z = f * f;
  const V p = polynomial(f, 3.3333331174e-1f, -2.4999993993e-1f, 2.0000714765e-1f, -1.6668057665e-1f, 1.4249322787e-1f,
                         -1.2420140846e-1f, 1.1676998740e-1f, -1.1514610310e-1f, 7.0376836292e-2f);
  // The small terms first; ln 2 in two parts, as in exp.
  const V small = fma(V(-0.5f), z, fma(e, V(-2.12194440e-4f), p * (f * z)));
  return fma(e, V(0.693359375f), f + small);
}

/// Natural logarithm: −inf at ±0, NaN below, inf stays, NaN stays.
template <class Isa>
Vec<Isa> log(Vec<Isa> x) {
  using V = Vec<Isa>;
  constexpr float infinity = std::numeric_limits<float>::infinity(), smallest = std::numeric_limits<float>::min();
  const auto subnormal = x < V(smallest);
  const V normal = max(V(smallest), select(subnormal, x * V(8388608.0f), x));
  const V y = log_of_normal(normal) - select(subnormal, V(15.942385152878742f), V(0.0f));  // 23 ln 2
  const V outside = select(x == V(0.0f), V(-infinity), V(std::numeric_limits<float>::quiet_NaN()));
  return select(V(0.0f) < x, select(x < V(infinity), y, x), outside);
}

/// eˣ − 1 for x ≤ 0, without losing the digits of small x; NaN stays.
template <class Isa>
Vec<Isa> expm1_of_negative(Vec<Isa> x_in) {
  using V = Vec<Isa>;
  const V x = max(V(-80.0f), x_in);
  const V n = nearest(x * V(1.44269504f));
  const V r = fma(n, V(2.12194440e-4f), fma(n, V(-0.693359375f), x));
  const V p = polynomial(r, 5.0000001201e-1f, 1.6666665459e-1f, 4.1665795894e-2f, 8.3334519073e-3f, 1.3981999507e-3f,
                         1.9875691500e-4f);
  const V s = power_of_two(n);
  return fma(s, fma(p, r * r, r), s - V(1.0f));  // 2ⁿ(eʳ − 1) + (2ⁿ − 1)
}

/// With tables in registers: x · R(|x|), where R(a) = tanh(a) / a is a polynomial of degree 5 in a − base on each of
/// sixteen intervals, narrow ones near 0. Everywhere else: odd polynomial near 0 (Cephes), 1 − 2 / (e²ˣ + 1) elsewhere.
template <class Isa>
Vec<Isa> tanh(Vec<Isa> x) {
  using V = Vec<Isa>;
  if constexpr (requires(V v) { Ops<Isa>::interval(v.r); }) {
    using namespace tanh_table;
    const V inside = min(V(last), max(V(-last), x)), size = abs(inside);
    const auto i = Ops<Isa>::interval(fma(size, V(scale), V(offset)).r);
    const V u = size - V(Ops<Isa>::pick(base, i));
    V p(Ops<Isa>::pick(coefficients[degree], i));
    for (int k = degree - 1; k >= 0; --k) p = fma(p, u, V(Ops<Isa>::pick(coefficients[k], i)));
    return inside * p;
  }
  const V a = abs(x), s = x * x;
  const V p =
      polynomial(s, -3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f, 2.06390887954e-2f, -5.70498872745e-3f);
  const V near = fma(p * s, x, x);
  const V far = V(1.0f) - V(2.0f) / (exp(a + a) + V(1.0f));
  return select(a < V(0.625f), near, copy_sign(far, x));
}

/// Two polynomials (N. Juffa's single-precision erf); the outer one inside 1 − e^….
template <class Isa>
Vec<Isa> erf(Vec<Isa> x) {
  using V = Vec<Isa>;
  const V a = min(V(4.0f), abs(x)), s = x * x;
  const V inner = fma(
      polynomial(s, 1.28379166e-1f, -3.76125336e-1f, 1.12819925e-1f, -2.67681349e-2f, 4.99119423e-3f, -5.96761703e-4f),
      x, x);
  const V p = polynomial(a, -1.28717512e-1f, -6.34846687e-1f, -1.06777877e-1f, 2.42546219e-2f, -3.88396438e-3f,
                         3.83197126e-4f, -1.72853470e-5f);
  const V outer = V(1.0f) - exp(fma(p, a, -a));
  return select(a <= V(0.927734375f), inner, copy_sign(outer, x));
}

/// 1 / (1 + e⁻ˣ).
template <class Isa>
Vec<Isa> sigmoid(Vec<Isa> x) {
  return Vec<Isa>(1.0f) / (Vec<Isa>(1.0f) + exp(-x));
}
/// x / (1 + e⁻ˣ) (Elfwing et al. 2018).
template <class Isa>
Vec<Isa> silu(Vec<Isa> x) {
  return x / (Vec<Isa>(1.0f) + exp(-x));
}
/// x/2 · (1 + erf(x/√2)) (Hendrycks and Gimpel 2016).
template <class Isa>
Vec<Isa> gelu(Vec<Isa> x) {
  using V = Vec<Isa>;
  return V(0.5f) * x * (V(1.0f) + erf(x * V(0.70710678f)));
}
/// x/2 · (1 + tanh(√(2/π)·(x + 0.044715 x³))), written as x · sigmoid(2…), which keeps its digits for negative x.
template <class Isa>
Vec<Isa> gelu_tanh(Vec<Isa> x) {
  using V = Vec<Isa>;
  const V inner = V(1.5957691216f) * fma(V(0.044715f) * x * x, x, x);
  return x / (V(1.0f) + exp(-inner));
}
/// elu(x) + 1: x + 1 above 0, eˣ below.
template <class Isa>
Vec<Isa> elu_plus_one(Vec<Isa> x) {
  using V = Vec<Isa>;
  return select(V(0.0f) < x, x + V(1.0f), exp(x));
}
/// max(x, 0); NaN stays.
template <class Isa>
Vec<Isa> relu(Vec<Isa> x) {
  return max(Vec<Isa>(0.0f), x);
}
/// max(x, 0)² (So et al. 2021).
template <class Isa>
Vec<Isa> squared_relu(Vec<Isa> x) {
  const Vec<Isa> r = relu(x);
  return r * r;
}
/// x above 0, α(eˣ − 1) below (Clevert et al. 2016).
template <class Isa>
Vec<Isa> elu(Vec<Isa> x, Vec<Isa> alpha) {
  using V = Vec<Isa>;
  return select(V(0.0f) < x, x, alpha * expm1_of_negative(min(V(0.0f), x)));
}
/// x / (1 + e⁻¹·⁷⁰²ˣ) (Hendrycks and Gimpel 2016).
template <class Isa>
Vec<Isa> quick_gelu(Vec<Isa> x) {
  using V = Vec<Isa>;
  return x / (V(1.0f) + exp(V(-1.702f) * x));
}
/// log(1 + eˣ) = max(x, 0) + log(1 + t) with t = e^−|x|. Of 1 + t as rounded, log(1 + t) is its logarithm and the part
/// that was rounded away, divided by it.
template <class Isa>
Vec<Isa> softplus(Vec<Isa> x) {
  using V = Vec<Isa>;
  const V t = exp(-abs(x)), u = V(1.0f) + t;
  return relu(x) + (log_of_normal(u) + (t - (u - V(1.0f))) / u);
}
/// c · tanh(x / c).
template <class Isa>
Vec<Isa> softcap(Vec<Isa> x, Vec<Isa> c) {
  return c * tanh(x / c);
}

/// One of kernel.hpp's functions of one number.
template <kernel::Unary op, class Isa>
Vec<Isa> apply(Vec<Isa> x, Vec<Isa> factor) {
  using U = kernel::Unary;
  if constexpr (op == U::identity)
    return x;
  else if constexpr (op == U::relu)
    return simd::relu(x);
  else if constexpr (op == U::gelu)
    return simd::gelu(x);
  else if constexpr (op == U::gelu_tanh)
    return simd::gelu_tanh(x);
  else if constexpr (op == U::silu)
    return simd::silu(x);
  else if constexpr (op == U::exp)
    return simd::exp(x);
  else if constexpr (op == U::tanh)
    return simd::tanh(x);
  else if constexpr (op == U::erf)
    return simd::erf(x);
  else if constexpr (op == U::elu_plus_one)
    return simd::elu_plus_one(x);
  else if constexpr (op == U::sigmoid)
    return simd::sigmoid(x);
  else if constexpr (op == U::log)
    return simd::log(x);
  else if constexpr (op == U::softplus)
    return simd::softplus(x);
  else if constexpr (op == U::elu)
    return simd::elu(x, factor);
  else if constexpr (op == U::squared_relu)
    return simd::squared_relu(x);
  else if constexpr (op == U::quick_gelu)
    return simd::quick_gelu(x);
  else if constexpr (op == U::softcap)
    return simd::softcap(x, factor);
  else
    return x * factor;
}

/// Calls f with a lambda Vec → Vec for `op`, so that the switch stands outside the loops.
template <class Isa, class F>
void with_unary(kernel::Unary op, float factor, F&& f) {
  using U = kernel::Unary;
  const auto call = [&]<U o>() { f([factor](Vec<Isa> x) { return apply<o>(x, Vec<Isa>(factor)); }); };
  switch (op) {
    case U::identity: return call.template operator()<U::identity>();
    case U::relu: return call.template operator()<U::relu>();
    case U::gelu: return call.template operator()<U::gelu>();
    case U::gelu_tanh: return call.template operator()<U::gelu_tanh>();
    case U::silu: return call.template operator()<U::silu>();
    case U::exp: return call.template operator()<U::exp>();
    case U::tanh: return call.template operator()<U::tanh>();
    case U::erf: return call.template operator()<U::erf>();
    case U::elu_plus_one: return call.template operator()<U::elu_plus_one>();
    case U::sigmoid: return call.template operator()<U::sigmoid>();
    case U::log: return call.template operator()<U::log>();
    case U::softplus: return call.template operator()<U::softplus>();
    case U::elu: return call.template operator()<U::elu>();
    case U::squared_relu: return call.template operator()<U::squared_relu>();
    case U::quick_gelu: return call.template operator()<U::quick_gelu>();
    case U::softcap: return call.template operator()<U::softcap>();
    case U::scale: return call.template operator()<U::scale>();
  }
}

}  // namespace treadle::simd

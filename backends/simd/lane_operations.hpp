#pragma once
// The operations of traced expressions on registers, for scores that are inlined: floats through the facade, 32-bit
// integers and truth values in the compiler's own vectors, which with an ISA's flags are its registers. Each is what
// the tile evaluator (graph/scalar/tile_engine.hpp) does to arrays.

#include <treadle/backends/simd/lane_math.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/graph/scalar/tile_engine.hpp>

#include <bit>
#include <cstdint>

namespace treadle::simd {

namespace detail {
template <int Width>
struct Registers;
template <>
struct Registers<4> {
  using Floats [[gnu::vector_size(16)]] = float;
  using Ints [[gnu::vector_size(16)]] = std::int32_t;
  using Unsigned [[gnu::vector_size(16)]] = std::uint32_t;
};
#if defined(__AVX__)
template <>
struct Registers<8> {
  using Floats [[gnu::vector_size(32)]] = float;
  using Ints [[gnu::vector_size(32)]] = std::int32_t;
  using Unsigned [[gnu::vector_size(32)]] = std::uint32_t;
};
#endif
#if defined(__AVX512F__)
template <>
struct Registers<16> {
  using Floats [[gnu::vector_size(64)]] = float;
  using Ints [[gnu::vector_size(64)]] = std::int32_t;
  using Unsigned [[gnu::vector_size(64)]] = std::uint32_t;
};
#endif
}  // namespace detail

/// One register whose lanes are all floats, or all 32-bit integers that wrap around, or all truth values (0 or −1).
template <class Isa>
struct Lanes {
  using R = detail::Registers<Vec<Isa>::width>;
  using Floats = typename R::Floats;
  using Ints = typename R::Ints;
  using Unsigned = typename R::Unsigned;
  static constexpr int width = Vec<Isa>::width;

  Ints bits;

  Lanes() = default;
  [[gnu::always_inline]] Lanes(Ints b) : bits(b) {}
  [[gnu::always_inline]] Lanes(Vec<Isa> v) : bits(std::bit_cast<Ints>(v.r)) {}
  [[gnu::always_inline]] static Lanes of_floats(Floats f) { return std::bit_cast<Ints>(f); }
  [[gnu::always_inline]] static Lanes of_unsigned(Unsigned u) { return std::bit_cast<Ints>(u); }
  /// Every lane.
  [[gnu::always_inline]] static Lanes all(std::int32_t x) {
    return of_unsigned(Unsigned{} + static_cast<std::uint32_t>(x));
  }
  /// first, first + 1, …
  [[gnu::always_inline]] static Lanes count_from(std::int32_t first) {
    Ints steps{};
    for (int i = 0; i < width; ++i) steps[i] = i;
    return of_unsigned(all(first).unsigned_ints() + std::bit_cast<Unsigned>(steps));
  }

  [[gnu::always_inline]] Vec<Isa> vec() const { return std::bit_cast<typename Ops<Isa>::Reg>(bits); }
  [[gnu::always_inline]] Floats floats() const { return std::bit_cast<Floats>(bits); }
  [[gnu::always_inline]] Unsigned unsigned_ints() const { return std::bit_cast<Unsigned>(bits); }
  [[gnu::always_inline]] Lanes to_floats() const { return of_floats(__builtin_convertvector(bits, Floats)); }
};

/// Largest integer not above a; a itself if it has none (infinite, NaN).
template <class Isa>
[[gnu::always_inline]] inline Vec<Isa> floor(Vec<Isa> a) {
  const Vec<Isa> n = nearest(a);
  return select(a < n, n - Vec<Isa>(1.0f), n);
}

/// The operations by node.
template <class Isa>
class LaneOperations {
  using L = Lanes<Isa>;
  using Op = scalar::Op;
  using Type = scalar::Type;
  using Int = std::int32_t;
  using Tile = scalar::TileEngine<LaneMath<Isa>, Int>;
  static constexpr int width = L::width;

 public:
  template <Op O, Type T>
  [[gnu::always_inline]] static L unary(L a) {
    using U = typename L::Unsigned;
    if constexpr (O == Op::number)
      return a.to_floats();
    else if constexpr (O == Op::logic_not)
      return L(~a.bits);
    else if constexpr (O == Op::exp)
      return simd::exp(a.vec());
    else if constexpr (O == Op::log)
      return simd::log(a.vec());
    else if constexpr (O == Op::tanh)
      return simd::tanh(a.vec());
    else if constexpr (O == Op::sqrt)
      return simd::sqrt(a.vec());
    else if constexpr (O == Op::sigmoid)
      return simd::sigmoid(a.vec());
    else if constexpr (O == Op::floor)
      return simd::floor(a.vec());
    else if constexpr (O == Op::neg && T == Type::number)
      return -a.vec();
    else if constexpr (O == Op::neg)
      return L::of_unsigned(U{} - a.unsigned_ints());
    else if constexpr (T == Type::number)
      return simd::abs(a.vec());
    else
      return L(a.bits < 0 ? L::of_unsigned(U{} - a.unsigned_ints()).bits : a.bits);
  }

  /// `T` is the type of the operands.
  template <Op O, Type T>
  [[gnu::always_inline]] static L binary(L x, L y) {
    if constexpr (O == Op::logic_and)
      return L(x.bits & y.bits);
    else if constexpr (O == Op::logic_or)
      return L(x.bits | y.bits);
    else if constexpr (T == Type::number)
      return numbers<O>(x, y);
    else if constexpr (O == Op::floor_div)
      return each_lane(x, y, [](Int a, Int b) { return Tile::divide(a, b); });
    else if constexpr (O == Op::floor_mod)
      return each_lane(x, y, [](Int a, Int b) { return Tile::modulo(a, b); });
    else if constexpr (O == Op::add)
      return L::of_unsigned(x.unsigned_ints() + y.unsigned_ints());
    else if constexpr (O == Op::sub)
      return L::of_unsigned(x.unsigned_ints() - y.unsigned_ints());
    else if constexpr (O == Op::mul)
      return L::of_unsigned(x.unsigned_ints() * y.unsigned_ints());
    else if constexpr (O == Op::min)
      return L(y.bits < x.bits ? y.bits : x.bits);
    else if constexpr (O == Op::max)
      return L(x.bits < y.bits ? y.bits : x.bits);
    else
      return compare<O>(x.bits, y.bits);
  }
  template <class G>
  [[gnu::always_inline]] static L each_lane(L x, L y, G g) {
    alignas(64) Int a[width], b[width], to[width];
    __builtin_memcpy(a, &x.bits, sizeof(a));
    __builtin_memcpy(b, &y.bits, sizeof(b));
    for (int i = 0; i < width; ++i) to[i] = g(a[i], b[i]);
    L result;
    __builtin_memcpy(&result.bits, to, sizeof(to));
    return result;
  }

 private:
  template <Op O>
  [[gnu::always_inline]] static L numbers(L x, L y) {
    const auto a = x.floats(), b = y.floats();
    if constexpr (O == Op::add)
      return L::of_floats(a + b);
    else if constexpr (O == Op::sub)
      return L::of_floats(a - b);
    else if constexpr (O == Op::mul)
      return L::of_floats(a * b);
    else if constexpr (O == Op::div)
      return L::of_floats(a / b);
    else if constexpr (O == Op::min)
      return L::of_floats(b < a ? b : a);
    else if constexpr (O == Op::max)
      return L::of_floats(a < b ? b : a);
    else
      return compare<O>(a, b);
  }
  template <Op O, class T>
  [[gnu::always_inline]] static L compare(T a, T b) {
    using Ints = typename L::Ints;
    if constexpr (O == Op::less)
      return L(static_cast<Ints>(a < b));
    else if constexpr (O == Op::less_equal)
      return L(static_cast<Ints>(a <= b));
    else if constexpr (O == Op::equal)
      return L(static_cast<Ints>(a == b));
    else
      return L(static_cast<Ints>(a != b));
  }
};

}  // namespace treadle::simd

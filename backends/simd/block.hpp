#pragma once
// The one inner loop of every product: a block of rows × vectors that stays in registers.
//
// The vector operand is b[k], a row of lanes; the other operand is one number of `a`, broadcast, read in its natural
// layout. Attention's scores (a = keys, b = Qᵀ), its values (a = Vᵀ, b = P) and matrix products (a = activations, b =
// packed weights) are all this loop. Each element is a chain of fma in order of k, whatever the shape of the block, so
// that results do not depend on how the rows are divided.

#include <treadle/backends/simd/facade.hpp>

#include <algorithm>
#include <utility>

namespace treadle::simd {

/// 8 × 3 accumulators where there are 32 registers, 4 × 3 where there are 16.
template <class Isa>
struct Shape {
  static constexpr int rows = Ops<Isa>::registers == 32 ? 8 : 4;
  static constexpr int vectors = 3;
  static constexpr int lanes = vectors * Vec<Isa>::width;
};

/// Of a block with fewer rows: four where there are registers for six rows of them.
template <class Isa>
inline constexpr int most_vectors = Ops<Isa>::registers == 32 ? 4 : 3;

template <int N>
using Constant = std::integral_constant<int, N>;

/// f(Constant<0>), …, f(Constant<N − 1>), written out.
template <int N, class F>
[[gnu::always_inline]] inline void unroll(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>)
      __attribute__((always_inline)) { (f(Constant<I>{}), ...); }(std::make_integer_sequence<int, N>{});
}

template <class Isa, int Rows, int Vectors>
struct Accumulators {
  Vec<Isa> at[Rows][Vectors];

  [[gnu::always_inline]] void clear() {
    unroll<Rows * Vectors>([&](auto i)
                               __attribute__((always_inline)) { at[i / Vectors][i % Vectors] = Vec<Isa>(0.0f); });
  }
  /// f(row, vector, accumulator&)
  template <class F>
  [[gnu::always_inline]] void each(F&& f) {
    unroll<Rows * Vectors>([&](auto i) __attribute__((always_inline)) {
      f(Constant<i / Vectors>{}, Constant<i % Vectors>{}, at[i / Vectors][i % Vectors]);
    });
  }
};

/// acc[r][v] += Σ_k a[r·stride + k] · b[k·ld + v·width] (rows of a are contiguous).
template <class Isa, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_rows(Accumulators<Isa, Rows, Vectors>& acc, const float* a,
                                                 std::int64_t stride, const float* b, std::int64_t ld,
                                                 std::int64_t depth) {
  const float* row[Rows];
  unroll<Rows>([&](auto r) __attribute__((always_inline)) { row[r] = a + r * stride; });
#pragma GCC unroll 2
  for (std::int64_t k = 0; k < depth; ++k, b += ld) {
    Vec<Isa> lanes[Vectors];
    unroll<Vectors>([&](auto v) __attribute__((always_inline)) { lanes[v] = Vec<Isa>::load(b + v * Vec<Isa>::width); });
    unroll<Rows>([&](auto r) __attribute__((always_inline)) {
      Vec<Isa> x(row[r][k]);
      pin(x);
      unroll<Vectors>([&](auto v) __attribute__((always_inline)) { acc.at[r][v] = fma(x, lanes[v], acc.at[r][v]); });
    });
  }
}

/// acc[r][v] += Σ_k a[r + k·stride] · b[k·ld + v·width] (columns of a are contiguous).
template <class Isa, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_columns(Accumulators<Isa, Rows, Vectors>& acc, const float* a,
                                                    std::int64_t stride, const float* b, std::int64_t ld,
                                                    std::int64_t depth) {
#pragma GCC unroll 2
  for (std::int64_t k = 0; k < depth; ++k, a += stride, b += ld) {
    Vec<Isa> lanes[Vectors];
    unroll<Vectors>([&](auto v) __attribute__((always_inline)) { lanes[v] = Vec<Isa>::load(b + v * Vec<Isa>::width); });
    unroll<Rows>([&](auto r) __attribute__((always_inline)) {
      Vec<Isa> x(a[r]);
      pin(x);
      unroll<Vectors>([&](auto v) __attribute__((always_inline)) { acc.at[r][v] = fma(x, lanes[v], acc.at[r][v]); });
    });
  }
}

/// Cuts n rows into blocks of Rows, Rows/2, …, 1 and calls f(Constant<size>, first) for each.
template <int Rows, class F>
inline void for_row_blocks(std::int64_t n, F&& f, std::int64_t first = 0) {
  for (; first + Rows <= n; first += Rows) f(Constant<Rows>{}, first);
  if constexpr (Rows > 1) {
    if (first < n) for_row_blocks<Rows / 2>(n, f, first);
  }
}

/// Calls f(Constant<1, …, Most>) for the number of vectors that n lanes need.
template <class Isa, int Most = 3, class F>
inline void with_vectors(std::int64_t n, F&& f) {
  constexpr int width = Vec<Isa>::width;
  if (n <= width) return f(Constant<1>{});
  if (n <= 2 * width) return f(Constant<2>{});
  if (Most == 3 || n <= 3 * width) return f(Constant<3>{});
  f(Constant<Most>{});
}

/// Rows of a block of so many vectors: as many accumulators as there are registers for.
template <class Isa, int Vectors>
inline constexpr int block_rows =
    Vectors > Shape<Isa>::vectors ? Shape<Isa>::rows* Shape<Isa>::vectors / Vectors : Shape<Isa>::rows;

/// Cuts n lanes into blocks of three vectors, of four where one would be left over and there are registers for it, and
/// calls f(Constant<vectors>, first) for each.
template <class Isa, class F>
inline void for_column_blocks(std::int64_t n, F&& f) {
  constexpr int width = Vec<Isa>::width;
  std::int64_t first = 0;
  for (; n - first > 4 * width || (n - first > 2 * width && n - first <= 3 * width); first += 3 * width)
    f(Constant<3>{}, first);
  if (n - first > 3 * width) {
    if constexpr (Ops<Isa>::registers == 32) return f(Constant<4>{}, first);
    f(Constant<2>{}, first);
    first += 2 * width;
  }
  if (n - first > width)
    f(Constant<2>{}, first);
  else if (n > first)
    f(Constant<1>{}, first);
}

inline constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
inline constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }

/// Hands out 64-byte aligned pieces of a workspace; with a null base it only adds up their size.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  float* floats(std::int64_t n) { return static_cast<float*>(bytes(static_cast<std::size_t>(n) * sizeof(float))); }
  void* bytes(std::size_t n) {
    void* p = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (n + 63) / 64 * 64;
    return p;
  }
  std::size_t used() const { return used_; }

 private:
  char* base_;
  std::size_t used_ = 0;
};

}  // namespace treadle::simd

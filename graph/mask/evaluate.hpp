#pragma once
// Elements of a mask to bits. A template, so that every ISA has its own copy; all give the same bits.

#include <treadle/graph/mask/tiles.hpp>
#include <treadle/graph/scalar/tile_engine.hpp>

#include <algorithm>

namespace treadle::mask {

/// Bit j set where lane j of a row of truth values is. An ISA may bring an instruction for it.
template <class Tag>
std::uint64_t pack_truths(const std::int32_t* lanes, int count) {
  if constexpr (requires { Tag::sign_bits(lanes); }) {
    std::uint64_t bits = 0;
    for (int i = 0; i < count; i += Tag::sign_lanes) bits |= Tag::sign_bits(lanes + i) << i;
    return count == 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
  } else {
    return scalar::TileEngine<scalar::PlainMath<Tag>, std::int32_t>::pack(lanes, count);
  }
}

/// The condition for `count` queries from q0 on and keys [k0, k1), one word of bits for each key. `values` is the
/// program's workspace; `queries_ready`: it holds what depends on the queries already.
template <class Tag, class Int>
void evaluate(const scalar::TileProgram& program, void* values, bool queries_ready, std::int64_t b, std::int64_t h,
              std::int64_t q0, int count, std::int64_t k0, std::int64_t k1, std::uint64_t* bits) {
  using Engine = scalar::TileEngine<scalar::PlainMath<Tag>, Int>;
  Engine engine(program, values);
  engine.queries(b, h, q0, count, queries_ready);
  for (std::int64_t k = k0; k < k1; k += Engine::max_lanes) {
    const int keys = static_cast<int>(std::min<std::int64_t>(Engine::max_lanes, k1 - k));
    engine.keys(k, keys);
    for (int first = 0; first < keys; first += scalar::TileProgram::max_rows) {
      const int rows = std::min(scalar::TileProgram::max_rows, keys - first);
      engine.rows(first, rows, nullptr, 0, count);
      const auto results = engine.results();
      for (int r = 0; r < rows; ++r) {
        std::int32_t buffer[Engine::max_lanes];
        bits[k - k0 + first + r] = pack_truths<Tag>(results(r, buffer), count);
      }
    }
  }
}

/// By the width of the program's integers.
struct Evaluators {
  Evaluate narrow, wide;
};
template <class Tag>
inline constexpr Evaluators evaluators = {evaluate<Tag, std::int32_t>, evaluate<Tag, std::int64_t>};

}  // namespace treadle::mask

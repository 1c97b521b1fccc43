#pragma once
// The score hook of attention kernels: runs a traced score function over a tile of scores, in place.

#include <treadle/graph/scalar/tile_engine.hpp>

#include <algorithm>

namespace treadle::simd {

/// The functions of an ISA, on arrays. Specialised where the ISA has its own; plain loops that the compiler vectorises
/// otherwise.
template <class Isa>
struct LaneMath : scalar::PlainMath<Isa> {};

inline std::size_t score_workspace_bytes(const scalar::TileProgram& program) {
  return (program.value_bytes + 63) / 64 * 64;
}

namespace detail {

template <class Isa, class Int>
void apply_score(const scalar::TileProgram& program, float* scores, std::int64_t ld, std::int64_t b, std::int64_t h,
                 std::int64_t q0, std::int64_t nq, std::int64_t k0, std::int64_t nk, void* workspace,
                 scalar::FeatureRows features) {
  constexpr std::int64_t lanes = scalar::TileProgram::max_lanes, rows = scalar::TileProgram::max_rows;
  scalar::TileEngine<LaneMath<Isa>, Int> engine(program, workspace);
  for (std::int64_t q = 0; q < nq; q += lanes) {
    const int count = static_cast<int>(std::min(lanes, nq - q));
    engine.features(features);
    if (features.q != nullptr) features.q += lanes;
    engine.queries(b, h, q0 + q, count);
    for (std::int64_t k = 0; k < nk; k += lanes) {
      const int keys = static_cast<int>(std::min(lanes, nk - k));
      engine.keys(k0 + k, keys);
      for (int first = 0; first < keys; first += static_cast<int>(rows)) {
        const int part = std::min(static_cast<int>(rows), keys - first);
        float* tile = scores + (k + first) * ld + q;
        engine.rows(first, part, tile, ld, count);
        for (int r = 0; r < part; ++r) {
          float buffer[lanes];
          engine.copy(engine.result(r, buffer), tile + r * ld, count);
        }
      }
    }
  }
}

}  // namespace detail

/// scores[key][lane] = f(scores[key][lane], b, h, q0 + lane, k0 + key) for nq lanes and nk keys; `ld` is the stride of
/// rows. `workspace` has score_workspace_bytes(program), 64-byte aligned, and belongs to one thread. `features` is read
/// by functions with sums: Qᵀ from query q0 on, K from key 0 on.
template <class Isa>
void apply_score(const scalar::TileProgram& program, float* scores, std::int64_t ld, std::int64_t b, std::int64_t h,
                 std::int64_t q0, std::int64_t nq, std::int64_t k0, std::int64_t nk, void* workspace,
                 const scalar::FeatureRows& features = {}) {
  const auto run = program.wide ? detail::apply_score<Isa, std::int64_t> : detail::apply_score<Isa, std::int32_t>;
  run(program, scores, ld, b, h, q0, nq, k0, nk, workspace, features);
}

/// The same for a feature map: out[i] = f(x[i]), n values; `out` may be `x`.
template <class Isa>
void apply_feature(const scalar::TileProgram& program, const float* x, float* out, std::int64_t n, void* workspace) {
  constexpr std::int64_t lanes = scalar::TileProgram::max_lanes, rows = scalar::TileProgram::max_rows;
  scalar::TileEngine<LaneMath<Isa>, std::int32_t> engine(program, workspace);
  const auto pass = [&](const float* from, float* to, int count, int width) {
    engine.rows(0, count, from, lanes, width);
    for (int r = 0; r < count; ++r) {
      float buffer[lanes];
      engine.copy(engine.result(r, buffer), to + r * lanes, width);
    }
  };
  engine.queries(0, 0, 0, static_cast<int>(lanes));
  std::int64_t i = 0;
  for (; i + lanes <= n;) {
    const auto count = static_cast<int>(std::min(rows, (n - i) / lanes));
    pass(x + i, out + i, count, static_cast<int>(lanes));
    i += count * lanes;
  }
  if (i < n) pass(x + i, out + i, 1, static_cast<int>(n - i));
}

}  // namespace treadle::simd

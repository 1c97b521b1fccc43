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

template <class Isa, class Int, class Take>
void score_rows(const scalar::TileProgram& program, const float* scores, std::int64_t ld, std::int64_t b,
                std::int64_t h, std::int64_t q0, std::int64_t nq, std::int64_t k0, std::int64_t nk, void* workspace,
                scalar::FeatureRows features, bool ready, Take& take) {
  constexpr std::int64_t lanes = scalar::TileProgram::max_lanes, rows = scalar::TileProgram::max_rows;
  scalar::TileEngine<LaneMath<Isa>, Int> engine(program, workspace);
  for (std::int64_t q = 0; q < nq; q += lanes) {
    const int count = static_cast<int>(std::min(lanes, nq - q));
    engine.features(features);
    if (features.q != nullptr) features.q += lanes;
    engine.queries(b, h, q0 + q, count, ready && nq <= lanes);
    for (std::int64_t k = 0; k < nk; k += lanes) {
      const int keys = static_cast<int>(std::min(lanes, nk - k));
      engine.keys(k0 + k, keys);
      for (int first = 0; first < keys; first += static_cast<int>(rows)) {
        const int part = std::min(static_cast<int>(rows), keys - first);
        engine.rows(first, part, scores + (k + first) * ld + q, ld, count);
        take(k + first, part, q, count, engine.results());
      }
    }
  }
}

}  // namespace detail

/// f(scores[key][lane], b, h, q0 + lane, k0 + key) for nq lanes and nk keys; `ld` is the stride of rows. Some keys
/// after others, calls take(key, keys, first, count, results), where results(i, buffer of 64 lanes) are the new scores
/// of lanes [first, first + count) and key + i; then the old ones may be overwritten. `workspace` has
/// score_workspace_bytes(program), 64-byte aligned, and belongs to one thread. `features` is read by functions with
/// sums: Qᵀ from query q0 on, K from key 0 on. `ready`: the workspace is as the last call left it, which had the same
/// queries and batch and head.
template <class Isa, class Take>
void score_rows(const scalar::TileProgram& program, const float* scores, std::int64_t ld, std::int64_t b,
                std::int64_t h, std::int64_t q0, std::int64_t nq, std::int64_t k0, std::int64_t nk, void* workspace,
                const scalar::FeatureRows& features, bool ready, Take&& take) {
  const auto run =
      program.wide ? detail::score_rows<Isa, std::int64_t, Take> : detail::score_rows<Isa, std::int32_t, Take>;
  run(program, scores, ld, b, h, q0, nq, k0, nk, workspace, features, ready, take);
}

/// The same in place.
template <class Isa>
void apply_score(const scalar::TileProgram& program, float* scores, std::int64_t ld, std::int64_t b, std::int64_t h,
                 std::int64_t q0, std::int64_t nq, std::int64_t k0, std::int64_t nk, void* workspace,
                 const scalar::FeatureRows& features = {}) {
  score_rows<Isa>(program, scores, ld, b, h, q0, nq, k0, nk, workspace, features, false,
                  [&](std::int64_t key, int keys, std::int64_t first, int count, const auto& results) {
                    for (int r = 0; r < keys; ++r) {
                      float buffer[scalar::TileProgram::max_lanes];
                      const float* row = results(r, buffer);
                      float* to = scores + (key + r) * ld + first;
                      for (int i = 0; i < count; ++i) to[i] = row[i];
                    }
                  });
}

/// The same for a feature map: out[i] = f(x[i]), n values; `out` may be `x`.
template <class Isa>
void apply_feature(const scalar::TileProgram& program, const float* x, float* out, std::int64_t n, void* workspace) {
  constexpr std::int64_t lanes = scalar::TileProgram::max_lanes, rows = scalar::TileProgram::max_rows;
  scalar::TileEngine<LaneMath<Isa>, std::int32_t> engine(program, workspace);
  const auto pass = [&](const float* from, float* to, int count, int width) {
    engine.rows(0, count, from, lanes, width);
    const auto results = engine.results();
    for (int r = 0; r < count; ++r) {
      float buffer[lanes];
      const float* row = results(r, buffer);
      for (int i = 0; i < width; ++i) to[r * lanes + i] = row[i];
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

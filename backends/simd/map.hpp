#pragma once
// A traced function of one number over every element.

#include <treadle/backends/simd/elementwise.hpp>
#include <treadle/backends/simd/lane_math.hpp>
#include <treadle/backends/simd/score_tile.hpp>

namespace treadle::simd {

template <class Isa>
kernel::Work plan_map(const kernel::Map& a) {
  return {Pieces(a.x.shape[0], a.x.shape[1]).count(), a.function == nullptr ? 0 : score_workspace_bytes(*a.function)};
}

template <class Isa>
void run_map(const kernel::Map& a, std::size_t first, std::size_t last, void* workspace) {
  Pieces(a.x.shape[0], a.x.shape[1]).each(first, last, [&](std::int64_t r, std::int64_t column, std::int64_t n) {
    apply_feature<Isa>(*a.function, a.x.as<const float>() + r * a.x.strides[0] + column,
                       a.out.as<float>() + r * a.out.strides[0] + column, n, workspace);
  });
}

}  // namespace treadle::simd

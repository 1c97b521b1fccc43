#pragma once
// What a finished list of steps allows before its buffers get memory: steps that need to run only once, and results
// that may be written over an operand.

#include <treadle/backends/plan.hpp>

#include <vector>

namespace treadle::plan {

/// A buffer that is made once is kept for as long as the model is bound, and shares its memory with nothing. Larger
/// ones are better made in every run.
inline constexpr std::size_t largest_kept = std::size_t{16} << 20;

/// Marks the steps that read nothing but constants (`Step::at_bind`) and turns what they write into constants without
/// memory yet. The same kernels make them, so results do not change.
void fold_at_bind(Plan& plan);

/// For each buffer: the arena buffer whose memory its first step may write over, or −1. That is so if the step works
/// element by element or row by row, the operand has the same view of a buffer of the same size, and nothing reads it
/// later.
std::vector<int> in_place_targets(const Plan& plan);

}  // namespace treadle::plan

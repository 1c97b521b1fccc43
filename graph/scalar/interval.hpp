#pragma once
// Interval analysis: is a condition true, false or undecided all over a rectangle of (b, h, q, k)?
//
// Sound for every expression: a verdict of empty or full holds at every point, in the float32 arithmetic of kernels and
// in the float64 arithmetic of the oracle. Precise for comparisons of sums of q and k, for documents and tables through
// minima and maxima over ranges; anything else is undecided at worst.

#include <treadle/graph/scalar/program.hpp>

namespace treadle::scalar {

enum class Verdict : std::uint8_t { empty, full, undecided };

/// Half-open ranges.
struct Box {
  std::int64_t b0 = 0, b1 = 1, h0 = 0, h1 = 1, q0 = 0, q1 = 0, k0 = 0, k1 = 0;
};

/// Workspace: one Interval for each node of the program.
inline std::size_t interval_workspace_bytes(const TileProgram& program) {
  return program.nodes.size() * sizeof(Interval);
}

/// Ranges of the nodes that do not depend on the key, for box.{b,h,q}; then of the others, for box.k as well.
void intervals_of_queries(const TileProgram& program, const Box& box, Interval* values);
void intervals_of_keys(const TileProgram& program, const Box& box, Interval* values);

/// The verdict on the root after both, if it is a condition.
inline Verdict verdict(const Interval& root) {
  if (!root.can_be_true) return Verdict::empty;
  return root.can_be_false ? Verdict::undecided : Verdict::full;
}

/// Both at once, allocating its workspace: for tests and reports. An empty box is empty.
Verdict classify(const TileProgram& program, const Box& box);

}  // namespace treadle::scalar

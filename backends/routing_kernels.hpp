#pragma once
// Kernels that make small tables which other kernels read: rotary angles, and which token goes to which expert. One
// portable version serves every ISA, so that the tables are the same on all of them.

#include <treadle/backends/kernel.hpp>

namespace treadle::kernel {

/// Row by row, the cosines and sines of position · frequencies[i], made in double (kernel::Rope reads them).
struct RotaryTable {
  TensorView positions;                 ///< i32 or i64 [rows]
  TensorView out;                       ///< f32 [rows, 2·rotary_dim]
  const double* frequencies = nullptr;  ///< rotary_dim / 2
  double magnitude = 1;                 ///< of every cosine and sine
  std::int64_t offset = 0;              ///< added to each position
  std::int64_t rotary_dim = 0;
  bool interleaved = false;
};
/// One row: rotary_dim cosines, then rotary_dim sines, negative where the channel's partner is subtracted.
void rotary_row(const RotaryTable& t, double position, float* out);

/// The top_k largest logits of each token, largest first, of equal ones the first; and their softmax over all experts,
/// over the chosen ones if renormalised.
struct ChooseExperts {
  TensorView logits;   ///< [tokens, experts]
  TensorView experts;  ///< i32 [tokens, top_k]
  TensorView weights;  ///< [tokens, top_k]
  bool renormalise = false;
};

/// An order of the tokens' choices in which each expert's stand together, in the order of the tokens.
struct GroupByExpert {
  TensorView experts;  ///< i32 [tokens, top_k]
  TensorView rows;     ///< i32 [tokens, top_k]: the place of each choice
  TensorView tokens;   ///< i32 [tokens·top_k]: the token at each place
  TensorView starts;   ///< i32 [experts + 1]: expert e has the places [starts[e], starts[e + 1])
};

extern const Kernel<RotaryTable> rotary_table;
extern const Kernel<ChooseExperts> choose_experts;
extern const Kernel<GroupByExpert> group_by_expert;

}  // namespace treadle::kernel

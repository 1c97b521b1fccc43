#pragma once
// Tables that lookups read, bound by name, and their minima and maxima over ranges.

#include <treadle/graph/scalar/expression.hpp>
#include <treadle/graph/tensor.hpp>

#include <array>
#include <string_view>
#include <vector>

namespace treadle::scalar {

/// A table as the caller hands it in: i32 or boolean for lookup<i32>, f32 for lookup<f32>; rank 1 or 2, any strides.
struct Table {
  std::string_view name;
  TensorView view;
};

/// The sizes that a mask or score function is bound to.
struct Extents {
  std::int64_t batch = 1, heads = 1, q_len = 0, k_len = 0;
  std::int64_t iteration = 0;  ///< index of the enclosing repeat
  std::int64_t features = 0;   ///< of the rows of q and k, for sums
};

struct MinMax {
  double lo = 0, hi = 0;
};

/// Reads an i32 or boolean table; 0 outside.
inline std::int64_t read_integer(const TensorView& t, std::int64_t i, std::int64_t j) {
  if (i < 0 || i >= t.shape[0] || (t.rank == 2 && (j < 0 || j >= t.shape[1]))) return 0;
  const std::int64_t at = i * t.strides[0] + (t.rank == 2 ? j * t.strides[1] : 0);
  return t.dtype == DType::i32 ? t.as<const std::int32_t>()[at] : t.as<const std::uint8_t>()[at] != 0;
}
/// Reads an f32 table; 0 outside.
inline float read_number(const TensorView& t, std::int64_t i, std::int64_t j) {
  if (i < 0 || i >= t.shape[0] || (t.rank == 2 && (j < 0 || j >= t.shape[1]))) return 0;
  return t.as<const float>()[i * t.strides[0] + (t.rank == 2 ? j * t.strides[1] : 0)];
}

/// How many entries of an ascending i32 table, or of its row `row` (rank 2), are at most `value`; 0 in rows outside.
inline std::int64_t count_until(const TensorView& t, std::int64_t row, std::int64_t value) {
  if (t.rank == 2 && (row < 0 || row >= t.shape[0])) return 0;
  std::int64_t low = 0, high = t.shape[t.rank == 2 ? 1 : 0];
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::int64_t entry = t.rank == 2 ? read_integer(t, row, middle) : read_integer(t, middle, 0);
    if (entry <= value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// A table bound to a program, with a tree of minima and maxima over blocks of its last dim. Binding again allocates
/// nothing while the table is not larger than before (or than was reserved).
class BoundTable {
 public:
  static constexpr std::int64_t leaf = 16;  ///< entries below the tree's first level

  Type type = Type::number;
  std::int32_t rank = 1;
  TensorView view;

  /// Throws std::invalid_argument if dtype or rank do not fit. `summarise`: build the tree, otherwise only the whole
  /// range.
  void bind(const TensorView& table, std::string_view name, bool summarise);
  void reserve(std::int64_t rows, std::int64_t columns);
  /// Over rows [r0, r1) and columns [c0, c1) (a rank-1 table is one row); the part outside the table reads 0.
  MinMax range(std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) const;
  bool has_nan() const { return nan_; }
  bool ascending() const { return ascending_; }  ///< each row, of an integer table

 private:
  MinMax row_range(std::int64_t row, std::int64_t c0, std::int64_t c1) const;
  double entry(std::int64_t row, std::int64_t column) const;

  std::int64_t rows_ = 0, columns_ = 0, per_row_ = 0;
  int levels_ = 0;
  std::array<std::int64_t, 64> level_first_{};
  std::vector<MinMax> tree_;
  MinMax all_;
  bool nan_ = false, ascending_ = true;
};

}  // namespace treadle::scalar

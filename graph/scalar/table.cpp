#include <treadle/graph/scalar/table.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace treadle::scalar {

namespace {

MinMax join(MinMax a, MinMax b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

std::int64_t tree_nodes(std::int64_t columns) {
  std::int64_t total = 0;
  for (std::int64_t n = (columns + BoundTable::leaf - 1) / BoundTable::leaf; n > 0; n = n > 1 ? (n + 1) / 2 : 0)
    total += n;
  return total;
}

}  // namespace

double BoundTable::entry(std::int64_t row, std::int64_t column) const {
  const std::int64_t i = rank == 2 ? row : column, j = rank == 2 ? column : 0;
  return type == Type::integer ? static_cast<double>(read_integer(view, i, j))
                               : static_cast<double>(read_number(view, i, j));
}

void BoundTable::reserve(std::int64_t rows, std::int64_t columns) {
  tree_.reserve(static_cast<std::size_t>(rows * tree_nodes(columns)));
}

void BoundTable::bind(const TensorView& table, std::string_view name, bool summarise) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument("table '" + std::string(name) + "' " + what);
  };
  if (table.rank != rank)
    refuse("has rank " + std::to_string(table.rank) + "; the lookup has " + std::to_string(rank) + " indices");
  const bool integers = table.dtype == DType::i32 || table.dtype == DType::boolean;
  if (type == Type::integer && !integers)
    refuse("is " + std::string(treadle::name(table.dtype)) + "; lookup<i32> reads i32 or bool");
  if (type == Type::number && table.dtype != DType::f32)
    refuse("is " + std::string(treadle::name(table.dtype)) + "; lookup<f32> reads f32");
  if (!table.data && table.size() > 0) refuse("has no data");
  view = table;
  rows_ = rank == 2 ? table.shape[0] : 1;
  columns_ = rank == 2 ? table.shape[1] : table.shape[0];
  per_row_ = levels_ = 0;
  nan_ = false;
  ascending_ = true;
  all_ = {};
  tree_.clear();
  if (rows_ == 0 || columns_ == 0) return;
  // Numbers never decide an integer's range, so score functions need no look at their f32 tables.
  if (!summarise && type == Type::number) return;
  if (summarise) {
    per_row_ = tree_nodes(columns_);
    tree_.resize(static_cast<std::size_t>(rows_ * per_row_));
    std::int64_t first = 0;
    for (std::int64_t n = (columns_ + leaf - 1) / leaf;; n = (n + 1) / 2) {
      level_first_[static_cast<std::size_t>(levels_++)] = first;
      first += n;
      if (n == 1) break;
    }
  }
  all_ = {entry(0, 0), entry(0, 0)};
  for (std::int64_t r = 0; r < rows_; ++r) {
    MinMax* row = tree_.data() + r * per_row_;
    for (std::int64_t block = 0; block * leaf < columns_; ++block) {
      const double start = entry(r, block * leaf);
      double previous = block > 0 ? entry(r, block * leaf - 1) : start;
      MinMax range{start, start};
      for (std::int64_t c = block * leaf; c < std::min(columns_, (block + 1) * leaf); ++c) {
        const double v = entry(r, c);
        nan_ = nan_ || std::isnan(v);
        ascending_ = ascending_ && v >= previous;
        previous = v;
        range = join(range, {v, v});
      }
      all_ = join(all_, range);
      if (summarise) row[block] = range;
    }
    for (int level = 1; level < levels_; ++level) {
      const MinMax* below = row + level_first_[static_cast<std::size_t>(level - 1)];
      MinMax* here = row + level_first_[static_cast<std::size_t>(level)];
      const std::int64_t n =
          level_first_[static_cast<std::size_t>(level)] - level_first_[static_cast<std::size_t>(level - 1)];
      for (std::int64_t i = 0; i < n; i += 2) here[i / 2] = i + 1 < n ? join(below[i], below[i + 1]) : below[i];
    }
  }
}

MinMax BoundTable::row_range(std::int64_t row, std::int64_t c0, std::int64_t c1) const {
  const MinMax* tree = tree_.data() + row * per_row_;
  MinMax result{entry(row, c0), entry(row, c0)};
  for (std::int64_t c = c0; c < c1;) {
    if (c % leaf != 0 || (c + leaf > c1 && c1 != columns_)) {
      const double v = entry(row, c++);
      result = join(result, {v, v});
      continue;
    }
    // The largest node of the tree that starts here and ends inside; the last node of a level may be cut off by the
    // end.
    int level = 0;
    std::int64_t at = c / leaf, width = leaf;
    while (level + 1 < levels_ && at % 2 == 0 && (c + 2 * width <= c1 || c1 == columns_)) {
      if (c + 2 * width > c1 && c + width >= c1) break;
      at /= 2;
      width *= 2;
      ++level;
    }
    result = join(result, tree[level_first_[static_cast<std::size_t>(level)] + at]);
    c += width;
  }
  return result;
}

MinMax BoundTable::range(std::int64_t r0, std::int64_t r1, std::int64_t c0, std::int64_t c1) const {
  const bool outside = r0 < 0 || r1 > rows_ || c0 < 0 || c1 > columns_;
  r0 = std::max<std::int64_t>(r0, 0);
  r1 = std::min(r1, rows_);
  c0 = std::max<std::int64_t>(c0, 0);
  c1 = std::min(c1, columns_);
  if (r0 >= r1 || c0 >= c1) return {};
  MinMax result = all_;
  // A rectangle of a few rows is worth a look; many rows have the whole table's range.
  if (levels_ > 0 && r1 - r0 <= 8) {
    result = row_range(r0, c0, c1);
    for (std::int64_t r = r0 + 1; r < r1; ++r) result = join(result, row_range(r, c0, c1));
  }
  return outside ? join(result, {0, 0}) : result;
}

}  // namespace treadle::scalar

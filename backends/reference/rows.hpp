#pragma once
// Dense attention in double for chosen rows: the measure of `relative_error` and `mean_entropy` at any length.

#include <treadle/graph/scalar/expression.hpp>
#include <treadle/graph/tensor.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace treadle::reference {

/// One query of one head.
struct Row {
  std::int64_t batch = 0, head = 0, query = 0;
};

struct RowResults {
  std::int64_t value_dim = 0;
  std::vector<double> out;      ///< [rows, value_dim]
  std::vector<double> lse;      ///< natural log-sum-exp of the scores; −inf for a row without keys
  std::vector<double> entropy;  ///< −Σ p ln p of the weights, in nats; 0 for a row without keys
};

/// True keeps. An empty function keeps everything.
using Keep = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)>;

/// softmax(scale · q kᵀ where keep) v for the given rows, in double. q [B, H, N, D], k [B, Hkv, M, D], v [B, Hkv, M,
/// Dv], f32, any strides; head h uses key head h / (H / Hkv). Rows may come in any order; rows of the same head that
/// stand together are faster. Throws Error for shapes that do not fit and rows outside them.
RowResults attention_rows(const TensorView& q, const TensorView& k, const TensorView& v, const Keep& keep, double scale,
                          std::span<const Row> rows);

/// Every row of q, or at most `per_head` of them a head, chosen by the seed without repetition and in ascending order.
std::vector<Row> sample_rows(const TensorView& q, std::int64_t per_head, std::uint64_t seed);

}  // namespace treadle::reference

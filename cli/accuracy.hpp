#pragma once
// How far a variant is from dense attention, and how wide its rows look, in float64.

#include "attention_model.hpp"

#include <treadle/backends/reference/rows.hpp>

#include <functional>
#include <optional>
#include <vector>

namespace treadle::cli {

struct Accuracy {
  double relative_error = 0;           ///< ‖out − dense‖ / ‖dense‖ over the rows (Frobenius)
  std::optional<double> mean_entropy;  ///< of the variant's own weights, in nats; none: it has no such weights
  std::vector<double> head_errors, head_entropies;  ///< the same of each head; entropies may be none
};

/// Measures over the same rows for every variant of one input: all query rows up to 2,048, else 64 a head chosen by the
/// seed. The dense attention that a variant is compared with has the variant's causality: causal variants are measured
/// against causal dense attention.
class AccuracyMeter {
 public:
  AccuracyMeter(const AttentionShape& shape, const float* q, const float* k, const float* v, std::uint64_t seed,
                int threads);
  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Rows of each head.
  std::int64_t rows_per_head() const { return rows() / (shape_.batch * shape_.heads); }
  Accuracy operator()(const Variant& variant, const std::vector<float>& out);

 private:
  AttentionShape shape_;
  TensorView q_, k_, v_;
  double scale_;
  int threads_;
  std::vector<reference::Row> rows_;
  reference::RowResults dense_, causal_;  ///< filled when first needed

  /// Every thread has a `keep` of its own.
  reference::RowResults softmax_rows(const std::function<reference::Keep()>& make_keep) const;
  /// Of every row.
  std::vector<double> mask_entropy(const Variant& variant) const;
  std::vector<double> linear_entropy(const Variant& variant) const;
  void add_entropies(Accuracy& a, const std::vector<double>& entropy) const;
};

}  // namespace treadle::cli

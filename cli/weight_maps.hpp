#pragma once
// Attention weights for pictures: every head of every layer over the same tokens.

#include "json_rows.hpp"
#include "measure.hpp"
#include "variants.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace treadle::cli {

struct WeightLayer {
  std::string name;                       ///< empty: its number
  std::vector<std::vector<float>> heads;  ///< [queries, keys] each
};

struct WeightMap {
  std::string name;  ///< "encoder self-attention"
  std::string note;
  std::vector<std::string> queries, keys;  ///< labels
  std::vector<WeightLayer> layers;
};

/// The weights of a variant on given q and k (of the first batch element), by the kernels themselves. More than `most`
/// tokens are pooled: summed over neighbouring keys, averaged over neighbouring queries. None for what has no weights
/// of single pairs, or too many.
std::optional<WeightMap> variant_weights(const Variant& variant, const AttentionShape& shape, const Tensors& tensors,
                                         const MeasureOptions& options, std::int64_t most = 64);

/// Weights as bytes, 255 times the square root of each, in base 64.
Json to_json_object(const WeightMap& map);

}  // namespace treadle::cli

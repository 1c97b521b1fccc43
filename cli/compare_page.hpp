#pragma once
// What the page of `compare` shows beside its rows, collected while it measures.

#include "accuracy.hpp"
#include "mask_map.hpp"
#include "measure.hpp"
#include "report.hpp"
#include "weight_maps.hpp"

#include <string>
#include <vector>

namespace treadle::cli {

class ComparePage {
 public:
  /// After a variant has been measured on an input.
  void add(const std::string& input, const Variant& variant, const AttentionShape& shape, const Measurement& m,
           const Accuracy& accuracy);
  /// After the variants of an input of given q, k and v.
  void add_weights(const std::vector<Variant>& variants, const AttentionShape& shape, const Tensors& tensors,
                   const MeasureOptions& options);
  /// The page's whole text.
  std::string html(const Report& report, const std::string& title);

 private:
  Json kernels_ = Json::array(), heads_ = Json::array(), weights_ = Json::array();
  std::vector<MaskMap> masks_;
  Json bandwidths_;  ///< measured when the first page is made
};

}  // namespace treadle::cli

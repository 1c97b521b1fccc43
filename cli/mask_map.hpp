#pragma once
// Which tiles of a variant's mask are empty, partial and full: the picture of what it computes.

#include "json_rows.hpp"
#include "variants.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace treadle::cli {

struct MaskMap {
  std::string variant;
  std::int64_t length = 0, strip = 0, block = 0;
  std::int64_t head = 0;
  bool same_for_all_heads = true;
  std::vector<std::string> rows;  ///< a strip of queries each; a block of keys each letter: e, p or f
  std::int64_t useful = 0, executed = 0, pairs = 0;
};

/// Of head `head` of the first batch element. None for what has no mask that is known before it runs.
std::optional<MaskMap> mask_map(const Variant& variant, const AttentionShape& shape, std::int64_t strip,
                                std::int64_t block, std::int64_t head = 0);

Json to_json_object(const MaskMap& map);

}  // namespace treadle::cli

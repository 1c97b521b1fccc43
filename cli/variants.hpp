#pragma once
// The kinds of attention that `compare` knows, as text and as what they mean.

#include <treadle/graph/graph.hpp>  // before masks: an op key is called causal too
#include <treadle/graph/mask/masks.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

/// A mask in plain code.
using Keep = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)>;

/// A boolean table [blocks, blocks] that a mask looks up, made for a length.
struct BlockTable {
  std::string name;  ///< of the model's input
  std::int64_t block = 1;
  std::function<std::vector<std::uint8_t>(std::int64_t blocks)> make;

  std::int64_t blocks(std::int64_t length) const { return (length + block - 1) / block; }
};

struct Variant {
  std::string name;                 ///< as it is reported: "window:128,128"
  bool linear = false;              ///< linear attention instead of softmax: elu + 1, or random features
  std::int64_t features = 0;        ///< of linear attention: positive random features (FAVOR+); 0: elu + 1
  std::int64_t seed = 0;            ///< of their projection
  bool causal = false;              ///< no query sees a later key
  std::optional<mask::Mask> mask;   ///< of softmax attention; none: everybody sees everybody
  std::optional<BlockTable> table;  ///< that the mask looks up
  /// The same mask over `length` queries and keys, for the float64 measures. Empty, or gives an empty one: everything
  /// is kept.
  std::function<Keep(std::int64_t length)> keep;
};

/// One line of `compare --list`.
struct VariantForm {
  std::string_view spelling, meaning, defaults, source, cost;
};
std::span<const VariantForm> variant_forms();

/// A variant as variant_forms() spells it; `seed` is that of random blocks. Throws Error with what there is.
Variant parse_variant(std::string_view text, std::uint64_t seed = 1);

/// A list with commas; numbers after a comma belong to the variant before: "dense,window:128,128,linear".
std::vector<Variant> parse_variants(std::string_view text, std::uint64_t seed = 1);

/// One line per form, for --help.
std::string variant_help();
/// All of variant_forms(), for --list.
std::string variant_list();

inline constexpr std::string_view default_variants =
    "dense,window:128,128,longformer,linear,causal,window:256,0,linear:causal";

}  // namespace treadle::cli

#pragma once
// The kinds of attention that `compare` knows, as text and as what they mean.

#include <treadle/graph/mask/patterns.hpp>
#include <treadle/ops/variants.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

/// heads, kv_heads and head_dim are numbers of the model; batch and length are bound when it runs.
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, length = 0, head_dim = 64;
};

/// A boolean table [blocks, blocks] that a mask looks up, made for a length.
struct BlockTable {
  std::string name;  ///< of the model's input
  std::int64_t block = 1;
  std::function<std::vector<std::uint8_t>(std::int64_t blocks)> make;

  std::int64_t blocks(std::int64_t length) const { return (length + block - 1) / block; }
};

struct Variant {
  std::string name = "dense";  ///< as it is reported: "window:128,128"
  AttentionVariant attention;  ///< what it is
  /// What it is for a shape, where it depends on that.
  std::function<AttentionVariant(const AttentionShape&)> at_shape;
  bool causal = false;              ///< no query sees a later key
  std::optional<BlockTable> table;  ///< that its mask looks up
  /// What its rows' weights are, for the measure of entropy: those of softmax over its mask, those of linear attention
  /// (of elu + 1, or of `features` random features), or no single row of weights.
  enum class Weights : std::uint8_t { softmax, linear, none } weights = Weights::softmax;
  std::int64_t features = 0, seed = 0;
  std::int64_t scores_held = 0;  ///< matrices of N × N numbers that a head holds in a run

  /// Bytes beside those of all variants over `s`.
  double own_bytes(const AttentionShape& s) const;
};

/// A variant such as "local:64,1:causal"; `seed` is that of random blocks and features. Throws Error with what there
/// is.
Variant parse_variant(std::string_view text, std::uint64_t seed = 1);

/// "all", or a list with commas; numbers after a comma belong to the variant before: "dense,window:128,128,linear".
std::vector<Variant> parse_variants(std::string_view text, std::uint64_t seed = 1);

/// One line per form, for --help.
std::string variant_help();
/// All forms with sources and costs, for --list.
std::string variant_list();

inline constexpr std::string_view default_variants =
    "dense,window:128,128,longformer,linear,causal,window:256,0,linear:causal";

}  // namespace treadle::cli

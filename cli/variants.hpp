#pragma once
// The kinds of attention that `compare` knows, as text and as what they mean.

#include <treadle/graph/graph.hpp>  // before masks: an op key is called causal too
#include <treadle/graph/mask/masks.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::cli {

struct Variant {
  std::string name;                ///< as it is reported: "window:128,128"
  bool linear = false;             ///< linear attention (elu + 1) instead of softmax
  bool causal = false;             ///< no query sees a later key
  std::optional<mask::Mask> mask;  ///< of softmax attention; none: everybody sees everybody
  /// The same mask in plain code, for the float64 measures (q and k have equal lengths here). Empty: everything is
  /// kept.
  std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)> keep;
};

/// "dense", "causal", "window:L,R", "longformer[:W,G]", "linear", "linear:causal". Throws Error with what there is.
Variant parse_variant(std::string_view text);

/// A list with commas; numbers after a comma belong to the variant before: "dense,window:128,128,linear".
std::vector<Variant> parse_variants(std::string_view text);

/// One line per form, for --help.
std::string variant_help();

inline constexpr std::string_view default_variants =
    "dense,window:128,128,longformer,linear,causal,window:256,0,linear:causal";

}  // namespace treadle::cli

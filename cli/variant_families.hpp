#pragma once
// What `compare` knows of each family of attention: how it is spelled, what it costs, where it comes from, and how it
// is made from the numbers behind its name.

#include "variants.hpp"

namespace treadle::cli {

/// A number behind the colon.
struct VariantNumber {
  std::string_view name;  ///< "look-back"
  std::string_view word;  ///< "LOOKBACK"
  std::int64_t otherwise = 0, least = 0, most = 0;
};

struct VariantFamily {
  std::string_view kind;
  std::span<const VariantNumber> numbers;
  std::size_t least_given = 0;  ///< of the numbers, if any are
  bool required = false;        ///< the numbers must be given
  std::string_view meaning, source;
  std::string_view cost;         ///< pairs of a head over N tokens, to first order
  std::string_view causal_cost;  ///< of the causal form; empty: there is none
  Variant (*make)(std::span<const std::int64_t> numbers, bool causal, std::uint64_t seed);
};

std::span<const VariantFamily> variant_families();

}  // namespace treadle::cli

#pragma once
// Tables about positions that models are given as inputs: ALiBi's slopes, T5's buckets, ids of positions among padding.
// Plain functions of the run time; a model reads their results by lookup, embedding or rope.

#include <treadle/graph/op.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace treadle {

/// One slope a head: 2^(−8 i / n), i = 1 … n, for n a power of two; for other counts those of the next lower power of
/// two, then every other slope of twice that (Press et al. 2022, §3 and the authors' code). Throws
/// std::invalid_argument for less than one head.
std::vector<double> alibi_slopes(std::int64_t heads);

struct RelativeBuckets {
  std::int64_t num_buckets = 32, max_distance = 128;
  bool bidirectional = true;  ///< false: keys after the query share bucket 0
};

/// The bucket of relative position = key − query: half of the buckets for exact distances, the rest in logarithmic
/// steps up to max_distance; bidirectional, one half of all for each sign, keys after the query in the upper one
/// (Raffel et al. 2020, §2.1). Throws std::invalid_argument for fewer buckets than it needs and for a max_distance that
/// leaves no room for steps.
std::int64_t relative_bucket(std::int64_t relative_position, RelativeBuckets o = {});

/// What rotary angles are made of. The fields after `rotary_dim` are those of RopeScaling (ops/rotary.hpp); `length` is
/// the sequence's, for dynamic_ntk.
struct RotaryAngles {
  double base = 10000;
  std::int64_t rotary_dim = 0;
  rope_scaling scaling = rope_scaling::none;
  double factor = 1;
  std::int64_t original_length = 0;
  double low = 0, high = 0, magnitude = 0;
  std::int64_t length = 0;
};
struct RotaryFrequencies {
  std::vector<double> values;  ///< radians a position, one for each pair of channels
  double magnitude = 1;        ///< of every cosine and sine
};
/// base^(−2i/rotary_dim), i < rotary_dim/2 (Su et al. 2021, eq. 15), changed as the scaling says:
///   linear       all divided by `factor` (Chen et al. 2023, eq. 3–4)
///   ntk          base · factor^(d/(d−2)), d = rotary_dim: the last pair is interpolated, the first stays (Peng et al.
///                2024, §3.1)
///   dynamic_ntk  the same with the factor factor·L/original − (factor − 1), L = max(length, original)
///   yarn         pair i by ramp between base^… and base^…/factor: kept below the pair that turns `high` times in
///                original_length positions, divided above the one that turns `low` times; the bounds are rounded
///                outwards. magnitude 0 stands for 0.1 ln(factor) + 1 (Peng et al. 2024, §3.2–3.4)
///   llama3       kept where original_length holds more than `high` turns, divided by `factor` below `low` turns, by
///                the share of turns in between (Llama 3.1)
/// in the conventions of the Transformers library (modeling_rope_utils), in double.
RotaryFrequencies rotary_frequencies(const RotaryAngles& a);

/// Where the rows of a projection for rotary queries or keys go when the layout of the pairs changes: row i of the new
/// weight [heads · head_dim, ·] is row result[i] of the old one. Scores stay as they were when queries and keys are
/// both changed; the first rotary_dim channels of each head take part. Throws std::invalid_argument for sizes that are
/// none.
std::vector<std::int64_t> rope_permutation(std::int64_t heads, std::int64_t head_dim, std::int64_t rotary_dim,
                                           rope_layout from, rope_layout to);

/// The rows of a row-major matrix (or of a vector) in another order: row i is row rows[i] of `values`. Throws
/// std::invalid_argument if the values are no whole rows or a row does not exist.
std::vector<float> permuted_rows(std::span<const float> values, std::span<const std::int64_t> rows);

/// Row by row of [rows, length], the number of kept tokens before each one; 0 where nothing is kept. `keep`: not 0
/// keeps. Throws std::invalid_argument if the rows have no whole length.
std::vector<std::int32_t> position_ids(std::span<const std::uint8_t> keep, std::int64_t length);

/// Row by row of [rows, length], padding_index + 1, + 2, … over the tokens that are not padding; padding_index on
/// padding, which is the id padding_index (Liu et al. 2019, RoBERTa, as its code has it).
std::vector<std::int32_t> position_ids_after_padding(std::span<const std::int64_t> ids, std::int64_t length,
                                                     std::int64_t padding_index);

}  // namespace treadle

#pragma once
// Tables about positions that models are given as inputs: ALiBi's slopes, T5's buckets, ids of positions among padding.
// Plain functions of the run time; a model reads their results by lookup, embedding or rope.

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

/// Row by row of [rows, length], the number of kept tokens before each one; 0 where nothing is kept. `keep`: not 0
/// keeps. Throws std::invalid_argument if the rows have no whole length.
std::vector<std::int32_t> position_ids(std::span<const std::uint8_t> keep, std::int64_t length);

/// Row by row of [rows, length], padding_index + 1, + 2, … over the tokens that are not padding; padding_index on
/// padding, which is the id padding_index (Liu et al. 2019, RoBERTa, as its code has it).
std::vector<std::int32_t> position_ids_after_padding(std::span<const std::int64_t> ids, std::int64_t length,
                                                     std::int64_t padding_index);

}  // namespace treadle

#pragma once
// Tables for block_table and lists for block_list: seeded random key blocks, as in BigBird (Zaheer et al. 2020, §2 and
// appendix D).
//
//   const RandomBlocks random{.per_row = 3, .left = 1, .right = 1, .first = 2, .seed = 1};
//   std::vector<std::uint8_t> table = random.table(query_blocks, key_blocks);     // [query_blocks, key_blocks], 0 or 1
//
//   block_window(64, 1, 1) | global_prefix(2 * 64) | block_table("random", 64)    // BigBird, with the table bound
//   std::vector<std::int32_t> list = random.list(query_blocks, key_blocks);       // [query_blocks, per_row], -1: none

#include <algorithm>
#include <cstdint>
#include <vector>

namespace treadle::mask {

/// For every row of query blocks, `per_row` different key blocks, drawn uniformly from those that the row does not see
/// anyway: not the `first` and `last` global ones, not the window from `left` before to `right` after it. Rows with
/// fewer blocks left get all of them; rows that are global themselves get none. The table depends on the numbers here
/// alone, so it is the same on every machine.
struct RandomBlocks {
  std::int64_t per_row = 3;
  std::int64_t left = 1, right = 1;  ///< of the window, in blocks
  std::int64_t first = 2;            ///< global blocks at the start
  std::int64_t last = 0;             ///< global blocks at the end
  bool causal = false;               ///< draw from blocks before the row's own only
  std::uint64_t seed = 1;

  /// Row-major [query_blocks, key_blocks]. Time and memory: one byte for each pair of blocks.
  std::vector<std::uint8_t> table(std::int64_t query_blocks, std::int64_t key_blocks) const {
    std::vector<std::uint8_t> chosen(static_cast<std::size_t>(query_blocks * key_blocks), 0);
    const std::vector<std::int32_t> blocks = list(query_blocks, key_blocks);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i] >= 0)
        chosen[static_cast<std::size_t>(static_cast<std::int64_t>(i) / per_row * key_blocks + blocks[i])] = 1;
    return chosen;
  }

  /// Row-major [query_blocks, per_row]: the blocks of each row, −1 for none. Memory: linear in the number of blocks.
  std::vector<std::int32_t> list(std::int64_t query_blocks, std::int64_t key_blocks) const {
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(query_blocks * std::max<std::int64_t>(per_row, 0)), -1);
    const std::int64_t offset = key_blocks - query_blocks;  // the last rows stand at the last keys
    for (std::int64_t row = 0; row < query_blocks; ++row) {
      const std::int64_t at = row + offset;
      if (at < first || at >= key_blocks - last) continue;
      const std::int64_t end = causal ? std::min(at, key_blocks - last) : key_blocks - last;
      // Candidates are the blocks [first, end) without the window: numbers [0, before) and those behind it.
      const std::int64_t before =
          std::clamp<std::int64_t>(at - left - first, 0, std::max<std::int64_t>(end - first, 0));
      const std::int64_t behind = std::max<std::int64_t>(at + right + 1, first);
      const std::int64_t candidates = before + std::max<std::int64_t>(end - behind, 0);
      const std::int64_t count = std::min(per_row, candidates);
      std::int32_t* to = blocks.data() + row * per_row;
      const std::int32_t* const begin = to;
      // Floyd's sampling without replacement: `count` draws, however many candidates there are.
      for (std::int64_t j = candidates - count; j < candidates; ++j) {
        const auto draw =
            static_cast<std::int64_t>(random(row, j) % static_cast<std::uint64_t>(j + 1));  // the bias is below 2^-32
        const auto hit = static_cast<std::int32_t>(block_of(draw, before, behind));
        const bool drawn = std::find(begin, static_cast<const std::int32_t*>(to), hit) != to;
        *to++ = drawn ? static_cast<std::int32_t>(block_of(j, before, behind)) : hit;
      }
    }
    return blocks;
  }

  /// Lists of their own for each head, [heads · query_blocks, per_row]: head h draws with seed + h.
  std::vector<std::int32_t> list_per_head(std::int64_t heads, std::int64_t query_blocks,
                                          std::int64_t key_blocks) const {
    std::vector<std::int32_t> blocks;
    for (std::int64_t h = 0; h < heads; ++h) {
      RandomBlocks of_head = *this;
      of_head.seed = seed + static_cast<std::uint64_t>(h);
      const std::vector<std::int32_t> one = of_head.list(query_blocks, key_blocks);
      blocks.insert(blocks.end(), one.begin(), one.end());
    }
    return blocks;
  }

 private:
  std::int64_t block_of(std::int64_t candidate, std::int64_t before, std::int64_t behind) const {
    return candidate < before ? first + candidate : behind + candidate - before;
  }
  static constexpr std::uint64_t scramble(std::uint64_t x) {  // the finaliser of splitmix64 (Steele et al. 2014)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t random(std::int64_t row, std::int64_t draw) const {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
    const std::uint64_t stream = scramble(seed + golden * (static_cast<std::uint64_t>(row) + 1));
    return scramble(stream + golden * (static_cast<std::uint64_t>(draw) + 1));
  }
};

}  // namespace treadle::mask

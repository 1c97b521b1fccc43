#pragma once
// Sparse patterns of the literature by name, made of the masks in masks.hpp.
//
//   sparse_transformer_strided(128)                  // Child et al. 2019, §4.3
//   sparse_transformer_fixed(128, 8)
//   causal & local_chunks(64, 1)                     // Kitaev et al. 2020; Roy et al. 2021
//   big_bird({.block = 64, .window = 3, .first = 1, .last = 1, .random = 3, .list = "random"})
//
// All are masks like any other: they combine with & | !, are shown by `explain`, and cost what they keep.

#include <treadle/graph/mask/masks.hpp>

namespace treadle::mask {

/// Chunks of `chunk` tokens: a query sees its own chunk and the `look_back` before it. Not causal by itself: a decoder
/// writes `causal & local_chunks(64, 1)` (Kitaev et al. 2020, §2; Roy et al. 2021, §4.1).
constexpr Mask local_chunks(std::int64_t chunk, std::int64_t look_back = 1,
                            Alignment alignment = Alignment::bottom_right) {
  if (chunk < 1) scalar::fail("the chunk of local chunks is 1 or more");
  if (look_back < 0) scalar::fail("local chunks look back 0 or more chunks");
  return block_window(chunk, look_back, 0, alignment);
}

/// Whether every head has both of a factorised pattern's key sets, or heads take turns: even heads the first set, odd
/// heads the second (Child et al. 2019, §4.2 and §5.2: "merged" and "multi-head").
enum class Heads : std::uint8_t { merged, alternating };

namespace detail {
/// causal & (near | far), or one of the two by the head's parity.
constexpr Mask factorised(const Mask& near, const Mask& far, Heads heads) {
  if (heads == Heads::merged) return causal & (near | far);
  const Mask even = mask_mod([](auto, auto h, auto, auto) { return h % 2 == 0; });
  return causal & ((even & near) | (~even & far));
}
}  // namespace detail

/// Child et al. 2019, §4.3, strided: the `stride` keys before the query and itself, and every key at a multiple of
/// `stride` behind it. With stride ≈ √N both sets have about √N keys, so N√N pairs in all. Causal.
constexpr Mask sparse_transformer_strided(std::int64_t stride, Heads heads = Heads::merged) {
  if (stride < 1) scalar::fail("the stride of a sparse transformer is 1 or more");
  return detail::factorised(window(stride, 0), strided(stride), heads);
}

/// Child et al. 2019, §4.3, fixed: the keys of the query's own block of `stride`, and the last `summary` keys of every
/// block (the paper's c: 8 to 32 for strides of 128 to 256). Causal. Positions count from the first key.
constexpr Mask sparse_transformer_fixed(std::int64_t stride, std::int64_t summary, Heads heads = Heads::merged) {
  if (stride < 1) scalar::fail("the stride of a sparse transformer is 1 or more");
  if (summary < 1 || summary > stride)
    scalar::fail("the summary of a fixed pattern has 1 to stride keys of each block");
  const Mask far = mask_mod([&](auto, auto, auto, auto k) { return k % stride >= stride - summary; });
  return detail::factorised(block_window(stride, 0, 0), far, heads);
}

/// BigBird's blocks; all but `block` count blocks.
struct BigBirdOptions {
  std::int64_t block = 64;       ///< tokens; 8 or more, so that tiles are found without looking at single elements
  std::int64_t window = 3;       ///< around the query's own block, an odd number
  std::int64_t first = 1;        ///< global blocks at the start: seen by all, and they see all
  std::int64_t last = 1;         ///< global blocks at the end
  std::int64_t random = 0;       ///< entries in each row of the list
  std::string_view list{};       ///< name of the block list; needed if `random` is not 0
  Blocks rows = Blocks::shared;  ///< a list for all heads, or one for each
};

/// BigBird, internal transformer construction: window, global and random blocks (Zaheer et al. 2020, §2 and appendix D;
/// its released models have block 64, window 3, random 3, and the first and the last block global). The random blocks
/// come from a list that is bound at run time, as RandomBlocks::list makes it or as a checkpoint brings it. N·block·
/// (window + first + last + random) pairs beside the global rows. Queries and keys are of one sequence.
constexpr Mask big_bird(BigBirdOptions o = {}) {
  if (o.window < 1 || o.window % 2 == 0) scalar::fail("BigBird's window is an odd number of blocks");
  if (o.first < 0 || o.last < 0 || o.random < 0) scalar::fail("BigBird has 0 or more global and random blocks");
  if (o.random > 0 && o.list.empty()) scalar::fail("BigBird's random blocks need the name of their list");
  const std::int64_t side = o.window / 2;
  Mask m = block_window(o.block, side, side);
  if (o.first > 0) m = m | global_prefix(o.first * o.block);
  if (o.last > 0)
    m = m | mask_mod([&](auto, auto, auto q, auto k) {
          const auto start = ((length(k) + (o.block - 1)) / o.block - o.last) * o.block;
          return (k >= start) | (q + (length(k) - length(q)) >= start);
        });
  if (o.random > 0) m = m | block_list(o.list, o.block, o.random, o.rows);
  return m;
}

}  // namespace treadle::mask

namespace treadle {
using mask::big_bird;
using mask::local_chunks;
using mask::sparse_transformer_fixed;
using mask::sparse_transformer_strided;
}  // namespace treadle

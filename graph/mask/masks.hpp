#pragma once
// Masks as an algebra: who may see whom, as small functions of (b, h, q, k) that are combined with & | !.
//
//   causal & window(256, 0)                          // a sliding window of 257 keys that never looks ahead
//   window(128, 128) | global_tokens({0})            // Longformer (Beltagy et al. 2020)
//   causal & documents("document")                   // packed sequences; ids are bound at run time
//   causal & cumulative_lengths("cu_seqlens")        // the same from where each begins
//   causal & block_window(64, 1, 0)                  // chunks of 64 with a look back of one
//   mask_mod([](auto b, auto h, auto q, auto k) { return (q - k) % 4 == h; })
//
// A Mask is a literal value and may stand in a consteval model. True keeps. Positions of queries are counted so that
// the last query stands at the last key (bottom_right, as with a KV cache) unless top_left is asked for; the two agree
// when the lengths do. Windows are inclusive on both ends. A row that sees nothing is allowed; its output is 0.

#include <treadle/graph/op.hpp>  // before the masks: an attribute is called causal too, and g++ sees a shadow
#include <treadle/graph/scalar/function.hpp>

#include <initializer_list>

namespace treadle::mask {

enum class Alignment : std::uint8_t { bottom_right, top_left };
/// Whether a table has one row for all batch elements (rank 1) or one row each (rank 2).
enum class Rows : std::uint8_t { shared, per_batch };
/// Whether a table of blocks serves all heads or has the rows of head h from h · query blocks on.
enum class Blocks : std::uint8_t { shared, per_head };

struct Mask {
  scalar::Function function;  ///< empty: everybody sees everybody

  constexpr bool empty() const { return function.empty(); }
  constexpr explicit operator bool() const { return !empty(); }
  constexpr int root() const { return function.root(); }
  constexpr scalar::View view() const { return function.view(); }
  /// The root of this mask in `pool`; an empty mask is the constant true.
  constexpr int add_to(scalar::Pool& pool) const { return empty() ? pool.constant(true) : function.add_to(pool); }
  friend constexpr bool operator==(const Mask&, const Mask&) = default;
};

/// f(b, h, q, k): may query q see key k?
template <class F>
constexpr Mask mask_mod(F&& f) {
  scalar::Tracing t;
  const int root = t.condition(f(t.b, t.h, t.q, t.k));
  return {scalar::Function(t.pool, root)};
}

namespace detail {
constexpr Mask combine(scalar::Op op, const Mask& a, const Mask& b) {
  scalar::Pool pool;
  const int x = a.add_to(pool);
  const int root = scalar::build::logic(pool, op, x, b.add_to(pool));
  return {scalar::Function(pool, root)};
}
constexpr scalar::Symbol position(scalar::Symbol q, scalar::Symbol k, Alignment alignment) {
  return alignment == Alignment::top_left ? q : q + (length(k) - length(q));
}
}  // namespace detail

constexpr Mask operator&(const Mask& a, const Mask& b) { return detail::combine(scalar::Op::logic_and, a, b); }
constexpr Mask operator|(const Mask& a, const Mask& b) { return detail::combine(scalar::Op::logic_or, a, b); }
constexpr Mask operator!(const Mask& a) {
  scalar::Pool pool;
  const int root = scalar::build::logic_not(pool, a.add_to(pool));
  return {scalar::Function(pool, root)};
}

/// The same as !, for `~a & b`: compilers warn about `!a & b`.
constexpr Mask operator~(const Mask& a) { return !a; }

// ------------------------------------------------------------------ the built-ins, over a pool of any size
namespace build {

using scalar::Pool;
using scalar::Symbol;

/// Keys left <= position − k, k − position <= right; −1 leaves that side open.
constexpr int window(Pool& pool, std::int64_t left, std::int64_t right, Alignment alignment = Alignment::bottom_right) {
  if (left < -1 || right < -1) scalar::fail("a window is (left, right), each 0 or more, or -1 for no bound");
  return scalar::trace_mask(pool, [&](auto, auto, Symbol q, Symbol k) {
    const Symbol at = detail::position(q, k, alignment);
    scalar::Condition inside{q.pool, q.pool->constant(true)};
    // Everything but one comparison depends on q alone and costs nothing per element.
    if (left >= 0) inside = inside & (k >= at - left);
    if (right >= 0) inside = inside & (k <= at + right);
    return inside;
  });
}

constexpr int causal(Pool& pool, Alignment alignment = Alignment::bottom_right) {
  return window(pool, -1, 0, alignment);
}

/// Keys at a multiple of `step` from the query.
constexpr int strided(Pool& pool, std::int64_t step, Alignment alignment = Alignment::bottom_right) {
  if (step < 1) scalar::fail("the step of a dilated or strided mask is 1 or more");
  return scalar::trace_mask(
      pool, [&](auto, auto, Symbol q, Symbol k) { return (detail::position(q, k, alignment) - k) % step == 0; });
}

constexpr int prefix(Pool& pool, std::int64_t n) {
  return scalar::trace_mask(pool, [&](auto, auto, auto, Symbol k) { return k < n; });
}

/// Key blocks left <= block of the position − block of k, the other way round <= right; −1 leaves that side open.
constexpr int block_window(Pool& pool, std::int64_t block, std::int64_t left, std::int64_t right,
                           Alignment alignment = Alignment::bottom_right) {
  if (block < 1) scalar::fail("the block of a block window is 1 or more");
  if (left < -1 || right < -1) scalar::fail("a block window is (left, right), each 0 or more, or -1 for no bound");
  return scalar::trace_mask(pool, [&](auto, auto, Symbol q, Symbol k) {
    const Symbol at = detail::position(q, k, alignment) / block;
    scalar::Condition inside{q.pool, q.pool->constant(true)};
    // Against k itself, not its block: the bounds depend on q alone and cost nothing per element.
    if (left >= 0) inside = inside & (k >= (at - left) * block);
    if (right >= 0) inside = inside & (k < (at + (right + 1)) * block);
    return inside;
  });
}

constexpr int global_prefix(Pool& pool, std::int64_t n, bool symmetric = true,
                            Alignment alignment = Alignment::bottom_right) {
  if (n < 0) scalar::fail("the number of global tokens is 0 or more");
  return scalar::trace_mask(pool, [&](auto, auto, Symbol q, Symbol k) {
    scalar::Condition hit = k < n;
    if (symmetric) hit = hit | (detail::position(q, k, alignment) < n);
    return hit;
  });
}

/// Any number of tokens, in any order; neighbours become ranges.
constexpr int global_tokens(Pool& pool, std::span<const std::int64_t> tokens, bool symmetric = true) {
  std::vector<std::int64_t> sorted;
  for (const std::int64_t t : tokens) {
    std::size_t at = sorted.size();
    sorted.push_back(t);
    for (; at > 0 && sorted[at - 1] > t; --at) sorted[at] = sorted[at - 1];
    sorted[at] = t;
  }
  return scalar::trace_mask(pool, [&](auto, auto, Symbol q, Symbol k) {
    Pool& p = *q.pool;
    std::vector<int> parts;
    for (std::size_t i = 0; i < sorted.size();) {
      std::size_t j = i + 1;
      while (j < sorted.size() && sorted[j] <= sorted[j - 1] + 1) ++j;
      const std::int64_t first = sorted[i], last = sorted[j - 1];
      const auto hit = [&](Symbol at) { return first == last ? at == first : (at >= first) & (at <= last); };
      parts.push_back(hit(k).node);
      if (symmetric) parts.push_back(hit(detail::position(q, k, Alignment::bottom_right)).node);
      i = j;
    }
    return scalar::Condition{&p, scalar::chain(p, scalar::Op::logic_or, parts)};
  });
}

constexpr Symbol entry(std::string_view name, Rows rows, Symbol b, Symbol at) {
  return rows == Rows::shared ? scalar::lookup<i32>(name, at) : scalar::lookup<i32>(name, b, at);
}
/// Of the query's own position. Queries before the first key, as there are with more queries than keys, have none; the
/// caller drops them, the index stays inside the table.
constexpr Symbol entry_of_query(std::string_view name, Rows rows, Symbol b, Symbol q, Symbol k) {
  return entry(name, rows, b, max(detail::position(q, k, Alignment::bottom_right), 0));
}
constexpr scalar::Condition has_key(Symbol q, Symbol k) { return detail::position(q, k, Alignment::bottom_right) >= 0; }

/// Tokens given by a table with one flag (i32 or boolean) per key.
constexpr int global_tokens(Pool& pool, std::string_view table, Rows rows, bool symmetric = true) {
  return scalar::trace_mask(pool, [&](Symbol b, auto, Symbol q, Symbol k) {
    scalar::Condition hit = entry(table, rows, b, k) != 0;
    if (symmetric) hit = hit | (has_key(q, k) & (entry_of_query(table, rows, b, q, k) != 0));
    return hit;
  });
}

constexpr int documents(Pool& pool, std::string_view table, Rows rows = Rows::shared) {
  return scalar::trace_mask(pool, [&](Symbol b, auto, Symbol q, Symbol k) {
    return has_key(q, k) & (entry_of_query(table, rows, b, q, k) == entry(table, rows, b, k));
  });
}

/// Sequences packed one after the other, with their cumulative lengths 0, n_0, n_0 + n_1, … for queries and for keys.
constexpr int cumulative_lengths(Pool& pool, std::string_view queries, std::string_view keys, std::int64_t left,
                                 std::int64_t right, Rows rows) {
  if (left < -1 || right < -1) scalar::fail("a window is (left, right), each 0 or more, or -1 for no bound");
  return scalar::trace_mask(pool, [&](Symbol b, auto, Symbol q, Symbol k) {
    const auto sequence = [&](std::string_view table, Symbol at) {
      return rows == Rows::shared ? scalar::searchsorted(table, at) : scalar::searchsorted(table, b, at);
    };
    const Symbol of_query = sequence(queries, q);
    // Where the query's sequence ends among the keys; 0 for padding behind the last sequence, whose number is past the
    // table, so that nobody sees it and it sees nobody.
    const Symbol end = entry(keys, rows, b, of_query);
    scalar::Condition inside = (sequence(keys, k) == of_query) & (k < end);
    if (left < 0 && right < 0) return inside;
    const Symbol at = q + (end - entry(queries, rows, b, of_query));  // the last query stands at the last key
    if (left >= 0) inside = inside & (k >= at - left);
    if (right >= 0) inside = inside & (k <= at + right);
    return inside;
  });
}

constexpr int key_lengths(Pool& pool, std::string_view table) {
  return scalar::trace_mask(pool, [&](Symbol b, auto, auto, Symbol k) { return k < scalar::lookup<i32>(table, b); });
}

/// The row of a block table for the block of q.
constexpr Symbol block_row(Blocks blocks, std::int64_t block, Symbol h, Symbol q) {
  if (blocks == Blocks::shared) return q / block;
  return h * ((length(q) + (block - 1)) / block) + q / block;
}

constexpr int block_table(Pool& pool, std::string_view table, std::int64_t block, Blocks blocks = Blocks::shared) {
  if (block < 1) scalar::fail("the block of a block table is 1 or more");
  return scalar::trace_mask(pool, [&](auto, Symbol h, Symbol q, Symbol k) {
    return scalar::lookup<i32>(table, block_row(blocks, block, h, q), k / block) != 0;
  });
}

constexpr int block_list(Pool& pool, std::string_view table, std::int64_t block, std::int64_t per_row,
                         Blocks blocks = Blocks::shared) {
  if (block < 1) scalar::fail("the block of a block list is 1 or more");
  if (per_row < 1) scalar::fail("a block list has 1 block or more in a row");
  return scalar::trace_mask(pool, [&](auto, Symbol h, Symbol q, Symbol k) {
    Pool& p = *q.pool;
    const Symbol row = block_row(blocks, block, h, q), at = k / block;
    std::vector<int> parts;
    for (std::int64_t i = 0; i < per_row; ++i) {
      const Symbol column{&p, p.constant(i)};
      parts.push_back((scalar::lookup<i32>(table, row, column) == at).node);
    }
    return scalar::Condition{&p, scalar::chain(p, scalar::Op::logic_or, parts)};
  });
}

}  // namespace build

namespace detail {
template <class F>
constexpr Mask from(F&& f) {
  scalar::Pool pool;
  const int root = f(pool);
  return {scalar::Function(pool, root)};
}
}  // namespace detail

// ------------------------------------------------------------------ the built-ins, as values

/// Keys from `left` before to `right` after the query, both included; −1 leaves a side open.
constexpr Mask window(std::int64_t left, std::int64_t right, Alignment alignment = Alignment::bottom_right) {
  return detail::from([&](scalar::Pool& p) { return build::window(p, left, right, alignment); });
}

/// `causal` alone is bottom_right; `causal(Alignment::top_left)` counts from the first query.
struct CausalMask : Mask {
  constexpr CausalMask() : Mask(detail::from([](scalar::Pool& p) { return build::causal(p); })) {}
  constexpr Mask operator()(Alignment alignment = Alignment::bottom_right) const {
    return detail::from([&](scalar::Pool& p) { return build::causal(p, alignment); });
  }
};
inline constexpr CausalMask causal{};

/// Keys at a multiple of `step` from the query.
constexpr Mask strided(std::int64_t step, Alignment alignment = Alignment::bottom_right) {
  return detail::from([&](scalar::Pool& p) { return build::strided(p, step, alignment); });
}
/// Of the keys of `inside`, every `step`-th: dilated(window(256, 0), 2).
constexpr Mask dilated(const Mask& inside, std::int64_t step, Alignment alignment = Alignment::bottom_right) {
  return inside & strided(step, alignment);
}
/// The first n keys: `causal | prefix(n)` is the prefix language model's mask.
constexpr Mask prefix(std::int64_t n) {
  return detail::from([&](scalar::Pool& p) { return build::prefix(p, n); });
}
/// Positions and keys are cut into blocks; a query sees the keys of its own block, of the `left` blocks before it and
/// of the `right` blocks after it, −1 leaves a side open. Chunks with look-back are block_window(chunk, look_back, 0)
/// (Kitaev et al. 2020; Roy et al. 2021), with `causal &` in front in a decoder; BigBird's window is block_window(64,
/// 1, 1).
constexpr Mask block_window(std::int64_t block, std::int64_t left, std::int64_t right,
                            Alignment alignment = Alignment::bottom_right) {
  return detail::from([&](scalar::Pool& p) { return build::block_window(p, block, left, right, alignment); });
}
/// The first n tokens are seen by everybody and, if symmetric, see everybody; with n a multiple of the block, these are
/// BigBird's global blocks (Zaheer et al. 2020, internal transformer construction).
constexpr Mask global_prefix(std::int64_t n, bool symmetric = true, Alignment alignment = Alignment::bottom_right) {
  return detail::from([&](scalar::Pool& p) { return build::global_prefix(p, n, symmetric, alignment); });
}
/// Tokens that everybody sees and, if symmetric, that see everybody.
constexpr Mask global_tokens(std::span<const std::int64_t> tokens, bool symmetric = true) {
  return detail::from([&](scalar::Pool& p) { return build::global_tokens(p, tokens, symmetric); });
}
constexpr Mask global_tokens(std::initializer_list<std::int64_t> tokens, bool symmetric = true) {
  return global_tokens(std::span<const std::int64_t>(tokens.begin(), tokens.size()), symmetric);
}
/// The same from a table of flags, one per key.
constexpr Mask global_tokens(std::string_view table, Rows rows = Rows::shared, bool symmetric = true) {
  return detail::from([&](scalar::Pool& p) { return build::global_tokens(p, table, rows, symmetric); });
}
/// Query and key in the same document; ids (i32, in any order) come from a table over the keys.
constexpr Mask documents(std::string_view table, Rows rows = Rows::shared) {
  return detail::from([&](scalar::Pool& p) { return build::documents(p, table, rows); });
}
/// Sequences packed without padding: a query sees the keys of its own sequence. The table (i32 [sequences + 1]) holds
/// where each begins, 0 first, and where the last ends; positions behind that are padding, which nobody sees and whose
/// output is 0 (FlashAttention's cu_seqlens). It must ascend; sequences may be empty. With `Rows::per_batch` it is
/// [batch, sequences + 1].
constexpr Mask cumulative_lengths(std::string_view table, Rows rows = Rows::shared) {
  return detail::from([&](scalar::Pool& p) { return build::cumulative_lengths(p, table, table, -1, -1, rows); });
}
/// The same with other lengths for keys (cu_seqlens_q, cu_seqlens_k), and a window inside each sequence, inclusive and
/// aligned so that a sequence's last query stands at its last key (−1: no bound): FlashAttention's varlen call with
/// causal=True is cumulative_lengths(q, k, −1, 0).
constexpr Mask cumulative_lengths(std::string_view queries, std::string_view keys, std::int64_t left = -1,
                                  std::int64_t right = -1, Rows rows = Rows::shared) {
  return detail::from([&](scalar::Pool& p) { return build::cumulative_lengths(p, queries, keys, left, right, rows); });
}
/// The first table[b] keys of each batch element.
constexpr Mask key_lengths(std::string_view table) {
  return detail::from([&](scalar::Pool& p) { return build::key_lengths(p, table); });
}
/// Blocks of queries × blocks of keys from a table [query blocks, key blocks] (i32 or boolean); the last block may be
/// partial. Tiles are found without looking at single elements if a block has 8 tokens or more. random_blocks.hpp fills
/// such tables. `Blocks::per_head`: [heads · query blocks, key blocks], one head below the other. The table grows with
/// the square of the length; block_list does not.
constexpr Mask block_table(std::string_view table, std::int64_t block, Blocks blocks = Blocks::shared) {
  return detail::from([&](scalar::Pool& p) { return build::block_table(p, table, block, blocks); });
}
/// The same from lists: a table i32 [query blocks, per_row] holds the numbers of the key blocks that a block of queries
/// sees; −1 stands for none, a block may stand there twice. Planning is linear where a block is no shorter than a
/// kernel's strip of 64 queries.
constexpr Mask block_list(std::string_view table, std::int64_t block, std::int64_t per_row,
                          Blocks blocks = Blocks::shared) {
  return detail::from([&](scalar::Pool& p) { return build::block_list(p, table, block, per_row, blocks); });
}

}  // namespace treadle::mask

namespace treadle {
using mask::Alignment;
using mask::block_list;
using mask::block_table;
using mask::Blocks;
using mask::cumulative_lengths;
using mask::Rows;
using enum mask::Alignment;
using mask::block_window;
using mask::causal;
using mask::dilated;
using mask::documents;
using mask::global_prefix;
using mask::global_tokens;
using mask::key_lengths;
using mask::mask_mod;
using mask::prefix;
using mask::strided;
using mask::window;
using scalar::feature_map;
using scalar::score_mod;
}  // namespace treadle

#pragma once
// The tiles of a mask, streamed: for a strip of queries, which keys it may see, without a list, an N×N tensor or an
// allocation, also when document ids or lengths change with every run.
//
// Intervals over rectangles, halved until they decide, find what is empty and what is full; what they cannot decide is
// evaluated once to bits. So the class of every tile and the number of non-zeros are exact for every mask.

#include <treadle/graph/scalar/interval.hpp>
#include <treadle/graph/scalar/program.hpp>
#include <treadle/graph/scalar/query_granule.hpp>

#include <algorithm>

namespace treadle::mask {

/// Keys [k0, k1) of a strip. Partial: bit j of bits[k - k0] says whether query q0 + j may see key k. Full: no bits.
/// Tiles start at multiples of 16; bits past the strip's last query are 0. `bits` is valid until the next call of
/// next().
struct Tile {
  std::int64_t k0 = 0, k1 = 0;
  bool full = false;
  const std::uint64_t* bits = nullptr;
};

struct Counts {
  std::int64_t useful = 0;       ///< non-zeros: (query, key) pairs that may attend
  std::int64_t executed = 0;     ///< area of the tiles that kernels see
  std::int64_t intervals = 0;    ///< rectangles that were classified
  std::int64_t evaluations = 0;  ///< intervals, and elements that were evaluated to bits

  Counts& operator+=(const Counts& other) {
    useful += other.useful;
    executed += other.executed;
    intervals += other.intervals;
    evaluations += other.evaluations;
    return *this;
  }
};

using Evaluate = void (*)(const scalar::TileProgram& program, void* values, bool queries_ready, std::int64_t b,
                          std::int64_t h, std::int64_t q0, int count, std::int64_t k0, std::int64_t k1,
                          std::uint64_t* bits);
struct Evaluators;  // evaluate.hpp

class Tiles {
 public:
  static constexpr std::int64_t max_strip = 64, max_block = 256, granule = 16;

  /// Everybody sees everybody, over nothing.
  Tiles() = default;
  /// `root` of `view` is a condition, or −1 for none; `dense` an optional boolean mask, true keeps, broadcast to
  /// [batch, heads, q_len, k_len] by shape 1 or stride 0. Both given: both must agree. Throws std::invalid_argument
  /// with a sentence if something does not fit.
  Tiles(scalar::View view, int root, const scalar::Extents& extents, std::span<const scalar::Table> tables = {},
        const TensorView& dense = {});

  /// Other lengths, tables (those not named stay) and dense mask (not given: the one before stays, if its shape fits).
  /// Allocates nothing while no table grows; workspace_bytes() does not change.
  void rebind(const scalar::Extents& extents, std::span<const scalar::Table> tables = {}, const TensorView& dense = {});

  /// For each stream, 64-byte aligned.
  std::size_t workspace_bytes() const;

  class Stream {
   public:
    /// The next tile in increasing k; false at the end. Empty tiles are skipped.
    bool next(Tile& tile);
    /// Starts at key k, a multiple of the block, instead of 0.
    void start_at(std::int64_t k) { at_ = std::max(at_, k); }
    std::int64_t intervals() const { return intervals_; }  ///< rectangles classified so far
    std::int64_t elements() const { return elements_; }    ///< elements evaluated to bits so far

   private:
    friend class Tiles;
    scalar::Verdict classify(std::int64_t k0, std::int64_t k1);
    bool partial(Tile& tile, std::int64_t k0, std::int64_t k1);
    /// The next keys of an evaluated block up to a granule that nobody sees, which is not worth a kernel's time.
    bool run(Tile& tile);

    const Tiles* tiles_ = nullptr;
    const Evaluators* evaluators_ = nullptr;
    std::int64_t b_ = 0, h_ = 0, q0_ = 0, q1_ = 0, block_ = 0;
    std::int64_t at_ = 0, full_end_ = 0;  // next block to look at; end of a full run being handed out
    std::uint64_t lanes_ = 0;             // a bit for every query of the strip
    scalar::Interval* intervals_of_nodes_ = nullptr;
    std::byte* values_ = nullptr;
    std::uint64_t* bits_ = nullptr;
    bool values_ready_ = false;
    std::int64_t base_ = 0, next_run_ = 0, evaluated_ = 0;  // the block in bits_: its first key, how far, how many
    std::int64_t intervals_ = 0, elements_ = 0;
  };

  /// Queries [q0, q1), at most 64, of head h of batch element b; block_k is 1 to 256. `this` must outlive the stream.
  /// Kernels evaluate with their ISA's copy of the code; the bits are the same.
  Stream stream(std::int64_t b, std::int64_t h, std::int64_t q0, std::int64_t q1, std::int64_t block_k, void* workspace,
                const Evaluators* evaluators = nullptr) const;

  /// Heads (batch elements) whose masks are the same may share tiles. The same before and after any rebind().
  bool depends_on_head() const;
  bool depends_on_batch() const;
  /// Aligned blocks of so many queries see the same keys: 0 if all do, 1 if nothing is known. For the same lengths, the
  /// same before and after any rebind().
  std::int64_t query_granule() const { return dense_ && dense_varies_[2] ? 1 : program_granule_; }

  /// All strips of `strip` queries of one head. Allocates one workspace.
  Counts count(std::int64_t b, std::int64_t h, std::int64_t strip, std::int64_t block_k) const;
  /// Over all batch elements and heads; masks that are shared are counted once and multiplied.
  Counts count_all(std::int64_t strip, std::int64_t block_k) const;

  const scalar::Extents& extents() const { return extents_; }
  const scalar::TileProgram* program() const { return has_program_ ? &program_ : nullptr; }
  const TensorView& dense() const { return dense_; }

 private:
  void set_dense(const TensorView& dense);
  void find_granule();

  scalar::Extents extents_;
  scalar::TileProgram program_;
  bool has_program_ = false;
  TensorView dense_;  // rank 4, broadcast strides 0
  // By batch element, by head, by query: by its shape, so that no caller's stride decides.
  std::array<bool, 3> dense_varies_{};
  std::int64_t program_granule_ = 0;
  std::vector<scalar::QueryPart> parts_;  // scratch of find_granule
};

}  // namespace treadle::mask

#include <treadle/graph/mask/tiles.hpp>

#include <treadle/graph/mask/evaluate.hpp>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace treadle::mask {

namespace {

using scalar::Verdict;

struct Portable {};

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Clears the bits of what a dense mask drops.
void and_dense(const TensorView& mask, std::int64_t b, std::int64_t h, std::int64_t q0, std::int64_t q1,
               std::int64_t k0, std::int64_t k1, std::uint64_t* bits) {
  const auto* base = mask.as<const std::uint8_t>() + b * mask.strides[0] + h * mask.strides[1] + q0 * mask.strides[2] +
                     k0 * mask.strides[3];
  if (mask.strides[2] == 0) {  // one row for all queries, such as key padding
    for (std::int64_t k = 0; k < k1 - k0; ++k)
      if (!base[k * mask.strides[3]]) bits[k] = 0;
    return;
  }
  std::uint64_t kept[Tiles::max_block] = {};
  for (std::int64_t q = 0; q < q1 - q0; ++q) {
    const std::uint8_t* row = base + q * mask.strides[2];
    for (std::int64_t k = 0; k < k1 - k0; ++k)
      kept[k] |= static_cast<std::uint64_t>(row[k * mask.strides[3]] != 0) << q;
  }
  for (std::int64_t k = 0; k < k1 - k0; ++k) bits[k] &= kept[k];
}

}  // namespace

Tiles::Tiles(scalar::View view, int root, const scalar::Extents& extents, std::span<const scalar::Table> tables,
             const TensorView& dense)
    : extents_(extents) {
  if (root >= 0) {
    if (view[root].type != scalar::Type::boolean) throw std::invalid_argument("a mask is a condition, not a number");
    program_ = scalar::compile(view, root, extents, tables);
    has_program_ = true;
  }
  if (dense) set_dense(dense);
  find_granule();
}

void Tiles::find_granule() {
  if (has_program_) program_granule_ = scalar::query_granule(program_, parts_);
}

void Tiles::set_dense(const TensorView& dense) {
  const std::int64_t want[] = {extents_.batch, extents_.heads, extents_.q_len, extents_.k_len};
  if (dense.dtype != DType::boolean) throw std::invalid_argument("a mask tensor is bool (true keeps)");
  if (dense.rank > 4 || dense.rank < 1)
    throw std::invalid_argument("a mask tensor has at most 4 dims: batch, heads, queries, keys");
  TensorView v = dense;
  v.rank = 4;
  dense_varies_ = {};
  for (int i = 0; i < 4; ++i) {
    const int from = i - (4 - dense.rank);  // missing leading dims broadcast
    const std::size_t at = static_cast<std::size_t>(i);
    v.shape[at] = want[i];
    v.strides[at] = 0;
    if (from < 0) continue;
    const std::int64_t size = dense.shape[static_cast<std::size_t>(from)];
    if (size != 1 && size != want[i])
      throw std::invalid_argument("a mask tensor has " + std::to_string(size) + " where the attention has " +
                                  std::to_string(want[i]));
    if (size == 1) continue;
    v.strides[at] = dense.strides[static_cast<std::size_t>(from)];
    if (i < 3) dense_varies_[at] = true;
  }
  dense_ = v;
}

void Tiles::rebind(const scalar::Extents& extents, std::span<const scalar::Table> tables, const TensorView& dense) {
  const bool lengths_changed = extents.q_len != extents_.q_len || extents.k_len != extents_.k_len;
  extents_ = extents;
  if (has_program_) scalar::rebind(program_, extents, tables);
  if (lengths_changed) find_granule();  // tables have no part in it
  if (dense) {
    set_dense(dense);
  } else if (dense_) {
    const std::int64_t want[] = {extents.batch, extents.heads, extents.q_len, extents.k_len};
    for (int i = 0; i < 4; ++i)
      if (dense_.strides[static_cast<std::size_t>(i)] != 0 && dense_.shape[static_cast<std::size_t>(i)] != want[i])
        throw std::invalid_argument("the lengths changed: bind a mask tensor that has them");
    for (int i = 0; i < 4; ++i) dense_.shape[static_cast<std::size_t>(i)] = want[i];
  }
}

std::size_t Tiles::workspace_bytes() const {
  const std::size_t bits = aligned(static_cast<std::size_t>(max_block) * sizeof(std::uint64_t));
  if (!has_program_) return bits;
  return bits + aligned(scalar::interval_workspace_bytes(program_)) + aligned(program_.value_bytes);
}

Tiles::Stream Tiles::stream(std::int64_t b, std::int64_t h, std::int64_t q0, std::int64_t q1, std::int64_t block_k,
                            void* workspace, const Evaluators* evaluators) const {
  Stream s;
  s.tiles_ = this;
  s.evaluators_ = evaluators != nullptr ? evaluators : &mask::evaluators<Portable>;
  s.b_ = b;
  s.h_ = h;
  s.q0_ = q0;
  s.q1_ = std::min(q1, q0 + max_strip);
  s.block_ = std::clamp<std::int64_t>(block_k, 1, max_block);
  const std::int64_t count = s.q1_ - q0;
  if (count <= 0) {
    s.at_ = extents_.k_len;
    return s;
  }
  s.lanes_ = count == max_strip ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  auto* memory = static_cast<std::byte*>(workspace);
  s.bits_ = reinterpret_cast<std::uint64_t*>(memory);
  if (!has_program_) return s;
  memory += aligned(static_cast<std::size_t>(max_block) * sizeof(std::uint64_t));
  s.intervals_of_nodes_ = reinterpret_cast<scalar::Interval*>(memory);
  s.values_ = memory + aligned(scalar::interval_workspace_bytes(program_));
  scalar::intervals_of_queries(program_, {b, b + 1, h, h + 1, q0, s.q1_, 0, 0}, s.intervals_of_nodes_);
  return s;
}

Verdict Tiles::Stream::classify(std::int64_t k0, std::int64_t k1) {
  ++intervals_;
  if (!tiles_->has_program_) return Verdict::full;
  const scalar::TileProgram& program = tiles_->program_;
  scalar::intervals_of_keys(program, {b_, b_ + 1, h_, h_ + 1, q0_, q1_, k0, k1}, intervals_of_nodes_);
  return scalar::verdict(intervals_of_nodes_[program.root()]);
}

bool Tiles::Stream::next(Tile& tile) {
  const std::int64_t k_len = tiles_ ? tiles_->extents_.k_len : 0;
  if (next_run_ < evaluated_ && run(tile)) return true;
  while (at_ < k_len) {
    if (at_ < full_end_) {  // inside a region known to be full: hand it out block by block
      const std::int64_t k0 = at_;
      at_ = std::min(k0 + block_, full_end_);
      if (tiles_->dense_) {
        if (partial(tile, k0, at_)) return true;
        continue;
      }
      tile = {k0, at_, true, nullptr};
      return true;
    }
    // The largest aligned run of blocks from here that is empty or full, or one block. Sizes are powers of two, so a
    // strip costs a number of intervals that grows with the logarithm of the keys it does not see.
    const std::int64_t block = at_ / block_;
    std::int64_t blocks =
        block == 0 ? static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>((k_len + block_ - 1) / block_)))
                   : block & -block;
    for (;; blocks /= 2) {
      const std::int64_t end = std::min(k_len, at_ + blocks * block_);
      if (blocks > 1 && at_ + (blocks / 2) * block_ >= k_len) continue;  // the same keys as its half
      const Verdict verdict = classify(at_, end);
      if (verdict == Verdict::empty) {
        at_ = end;
        break;
      }
      if (verdict == Verdict::full) {
        full_end_ = end;
        break;
      }
      if (blocks > 1) continue;
      const std::int64_t k0 = at_;
      at_ = end;
      if (partial(tile, k0, end)) return true;
      break;
    }
  }
  return false;
}

bool Tiles::Stream::partial(Tile& tile, std::int64_t k0, std::int64_t k1) {
  constexpr std::int64_t part = scalar::TileProgram::max_lanes;
  const std::int64_t count = k1 - k0;
  const bool known_full = k0 < full_end_;
  if (tiles_->has_program_ && !known_full) {
    const scalar::TileProgram& program = tiles_->program_;
    const Evaluate to_bits = program.wide ? evaluators_->wide : evaluators_->narrow;
    // A part that intervals decide need not be evaluated; one of a kind with the block has been asked about already.
    for (std::int64_t k = k0; k < k1; k += part) {
      const std::int64_t end = std::min(k + part, k1);
      const Verdict verdict = count <= part ? Verdict::undecided : classify(k, end);
      if (verdict == Verdict::undecided) {
        to_bits(program, values_, values_ready_, b_, h_, q0_, static_cast<int>(q1_ - q0_), k, end, bits_ + (k - k0));
        values_ready_ = true;
        elements_ += (end - k) * (q1_ - q0_);
      } else {
        std::fill_n(bits_ + (k - k0), end - k, verdict == Verdict::full ? lanes_ : 0);
      }
    }
  } else {
    std::fill_n(bits_, count, lanes_);
  }
  if (tiles_->dense_) {
    and_dense(tiles_->dense_, b_, h_, q0_, q1_, k0, k1, bits_);
    elements_ += count * (q1_ - q0_);
  }
  std::uint64_t all = lanes_;
  for (std::int64_t i = 0; i < count; ++i) {
    bits_[i] &= lanes_;
    all &= bits_[i];
  }
  if (all == lanes_) {
    tile = {k0, k1, true, nullptr};
    return true;
  }
  base_ = k0;
  next_run_ = 0;
  evaluated_ = count;
  return run(tile);
}

bool Tiles::Stream::run(Tile& tile) {
  const auto seen = [&](std::int64_t i) {
    return std::any_of(bits_ + i, bits_ + std::min(i + granule, evaluated_), [](std::uint64_t b) { return b != 0; });
  };
  while (next_run_ < evaluated_ && !seen(next_run_)) next_run_ += granule;
  if (next_run_ >= evaluated_) return false;
  const std::int64_t first = next_run_;
  while (next_run_ < evaluated_ && seen(next_run_)) next_run_ += granule;
  const std::int64_t last = std::min(next_run_, evaluated_);
  const bool full = std::all_of(bits_ + first, bits_ + last, [&](std::uint64_t b) { return b == lanes_; });
  tile = {base_ + first, base_ + last, full, full ? nullptr : bits_ + first};
  return true;
}

bool Tiles::depends_on_head() const {
  if (dense_ && dense_varies_[1]) return true;
  return has_program_ && program_.uses(scalar::uses_h);
}

bool Tiles::depends_on_batch() const {
  if (dense_ && dense_varies_[0]) return true;
  return has_program_ && program_.uses(scalar::uses_b);
}

Counts Tiles::count(std::int64_t b, std::int64_t h, std::int64_t strip, std::int64_t block_k) const {
  strip = std::clamp<std::int64_t>(strip, 1, max_strip);
  std::vector<std::uint64_t> workspace(aligned(workspace_bytes()) / sizeof(std::uint64_t));
  Counts counts;
  for (std::int64_t q0 = 0; q0 < extents_.q_len; q0 += strip) {
    const std::int64_t q1 = std::min(q0 + strip, extents_.q_len);
    Stream s = stream(b, h, q0, q1, block_k, workspace.data());
    for (Tile t; s.next(t);) {
      counts.executed += (t.k1 - t.k0) * (q1 - q0);
      if (t.full)
        counts.useful += (t.k1 - t.k0) * (q1 - q0);
      else
        for (std::int64_t k = 0; k < t.k1 - t.k0; ++k) counts.useful += std::popcount(t.bits[k]);
    }
    counts.intervals += s.intervals();
    counts.evaluations += s.intervals() + s.elements();
  }
  return counts;
}

Counts Tiles::count_all(std::int64_t strip, std::int64_t block_k) const {
  Counts total;
  const std::int64_t batches = depends_on_batch() ? extents_.batch : std::min<std::int64_t>(extents_.batch, 1);
  const std::int64_t heads = depends_on_head() ? extents_.heads : std::min<std::int64_t>(extents_.heads, 1);
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t h = 0; h < heads; ++h) total += count(b, h, strip, block_k);
  const std::int64_t shared = (batches > 0 ? extents_.batch / batches : 0) * (heads > 0 ? extents_.heads / heads : 0);
  total.useful *= shared;
  total.executed *= shared;
  return total;
}

}  // namespace treadle::mask

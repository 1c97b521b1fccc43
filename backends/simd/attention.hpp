#pragma once
// Tiled attention with online softmax (Milakov and Gimelshein 2018; Dao 2023), transposed: a strip of queries lies in
// the lanes.
//
//   Sᵀ[key][query] = Σ_d K[key][d] · Qᵀ[d][query]        K and V are read where they are, one number broadcast at a
//   time; Oᵀ[e][query]  += Σ_key V[key][e] · Pᵀ[key][query]     only the strip's queries and outputs are transposed.
//
// So softmax is vertical (no reduction across lanes), and the rescaling of O is folded into loading its accumulators.
// Softmax runs in base 2; scale·log2 e goes into Qᵀ unless a bias or a score function needs natural scores.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/ahead.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/lane_math.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/transpose.hpp>
#include <treadle/graph/mask/evaluate.hpp>

#include <cmath>
#include <limits>

namespace treadle::simd {

/// Queries of a strip: three vectors, or four where that keeps a mask's blocks of queries apart and three do not. Then
/// every tile is full or empty.
template <class Isa>
std::int64_t strip_of(const kernel::Attention& a) {
  constexpr std::int64_t usual = Shape<Isa>::lanes, most = most_vectors<Isa> * Vec<Isa>::width;
  const std::int64_t same = a.mask != nullptr ? a.mask->query_granule() : 0;
  return same % most == 0 && same % usual != 0 ? most : usual;
}

template <class Isa>
struct AttentionWork {
  float *q, *o, *s, *bias;           // Qᵀ [head_dim][ld], Oᵀ [value_dim][ld], Sᵀ then Pᵀ [block][ld], one row of bias
  float *top, *sum, *alpha, *shift;  // running maximum and sum of each lane, what O is rescaled by, the finite maximum
  void *tiles, *score;
  std::size_t bytes;
  std::int64_t strip, block;  // queries and keys of a tile
  std::int64_t q_size, o_size;

  /// q, o, top and sum for each of `heads`, one after the other; the rest is shared.
  AttentionWork(const kernel::Attention& a, void* base, std::int64_t heads = 1)
      : strip(strip_of<Isa>(a)),
        block(Ops<Isa>::registers == 32 && strip == Shape<Isa>::lanes ? 192 : 128),
        q_size(a.q.shape[3] * strip),
        o_size(a.v.shape[3] * strip) {
    Carver c(base);
    q = c.floats(heads * q_size);
    o = c.floats(heads * o_size);
    top = c.floats(heads * strip);
    sum = c.floats(heads * strip);
    s = c.floats(block * strip);
    bias = c.floats(block);
    alpha = c.floats(strip);
    shift = c.floats(strip);
    tiles = c.bytes(a.mask != nullptr ? a.mask->workspace_bytes() : 0);
    score = c.bytes(a.score != nullptr ? score_workspace_bytes(*a.score) : 0);
    bytes = c.used();
  }

  AttentionWork of_head(std::int64_t i) const {
    AttentionWork w = *this;
    w.q += i * q_size;
    w.o += i * o_size;
    w.top += i * strip;
    w.sum += i * strip;
    return w;
  }
};

template <class Isa, int Vectors>
class AttentionStrip {
 public:
  AttentionStrip(const kernel::Attention& a, const AttentionWork<Isa>& w, std::int64_t b, std::int64_t h,
                 std::int64_t q0, std::int64_t count)
      : a_(a), w_(w), b_(b), h_(h), q0_(q0), count_(count), dim_(a.q.shape[3]), values_(a.v.shape[3]) {
    const std::int64_t kv = h / (a.q.shape[1] / a.k.shape[1]);
    k_ = a.k.template as<const float>() + b * a.k.strides[0] + kv * a.k.strides[1];
    v_ = a.v.template as<const float>() + b * a.v.strides[0] + kv * a.v.strides[1];
    if (const std::int64_t next = std::min(count, q0); next > 0) {  // strips come from last to first
      q_ahead_ = {row_of<const float>(a.q, q0 - next), a.q.strides[2], next, dim_};
      out_ahead_ = {row_of<const float>(a.out, q0 - next), a.out.strides[2], next, values_};
    }
    hooked_ = a.score != nullptr || a.bias;
    raw_ = a.score != nullptr && a.score->reads_features();
    products_ = a.score == nullptr || a.score->uses(scalar::uses_score);
  }

  /// The same queries of heads [h, h + heads), which see the same keys: each tile of the mask is found once.
  static void run(const kernel::Attention& a, const AttentionWork<Isa>& w, std::int64_t b, std::int64_t h,
                  std::int64_t heads, std::int64_t q0, std::int64_t count) {
    const auto strip = [&](std::int64_t i) {
      i = std::min(i, heads - 1);
      return AttentionStrip(a, w.of_head(i), b, h + i, q0, count);
    };
    static_assert(most_heads == 4);
    AttentionStrip strips[most_heads] = {strip(0), strip(1), strip(2), strip(3)};
    const auto all_tiles = [&] {
      for (std::int64_t i = 0; i < heads; ++i) strips[i].begin();
      strips[0].each_tile([&](std::int64_t k0, std::int64_t k1, const std::uint64_t* bits) {
        for (std::int64_t i = 0; i < heads; ++i) {
          if (i + 1 < heads)
            strips[i].look_ahead(strips[i + 1], k0, k1);
          else
            strips[i].look_ahead(strips[0], k1, std::min(2 * k1 - k0, a.k.shape[2]));
          strips[i].tile(k0, k1, bits);
        }
      });
    };
    all_tiles();
    // A weight of 0 must not meet a value that is no finite number, for 0·NaN is NaN. Such a value leaves its trace in
    // the outputs, so nothing looks for them before: only then everything is done again, with care.
    bool again = false;
    for (std::int64_t i = 0; i < heads; ++i)
      again |= strips[i].exact_ = strips[i].hides_ && !strips[i].finite_outputs();
    if (again) all_tiles();
    for (std::int64_t i = 0; i < heads; ++i) strips[i].finish();
  }

  static constexpr std::int64_t most_heads = 4;

 protected:
  using V = Vec<Isa>;
  static constexpr int width = V::width;
  static constexpr std::int64_t ld = Vectors * width;
  static constexpr float log2e = 1.44269504f;
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  /// f(k0, k1, bits) for what the strip may see; bits are null where it is all.
  template <class F>
  void each_tile(F&& f) {
    if (a_.mask == nullptr) {
      const std::int64_t keys = a_.k.shape[2];
      for (std::int64_t k = 0; k < keys; k += w_.block) f(k, std::min(k + w_.block, keys), nullptr);
    } else {
      auto stream = a_.mask->stream(b_, h_, q0_, q0_ + count_, w_.block, w_.tiles, &mask::evaluators<Isa>);
      mask::Tile t;
      while (stream.next(t)) {
        const std::uint64_t* bits = t.full ? nullptr : t.bits;
        if (bits != nullptr) {  // what no query sees at both ends costs nothing
          while (t.k0 < t.k1 && *bits == 0) ++t.k0, ++bits;
          while (t.k0 < t.k1 && bits[t.k1 - t.k0 - 1] == 0) --t.k1;
        }
        if (t.k0 < t.k1) f(t.k0, t.k1, bits);
      }
    }
  }

  void begin() {
    const float* q = row_of<const float>(a_.q, q0_);
    transpose_in<Isa>(q, a_.q.strides[2], count_, dim_, w_.q, ld, raw_ ? 1.0f : hooked_ ? a_.scale : a_.scale * log2e);
    for (std::int64_t i = 0; i < values_ * ld; i += width) V(0.0f).store(w_.o + i);
    for (int i = 0; i < ld; i += width) {
      V(-infinity).store(w_.top + i);
      V(0.0f).store(w_.sum + i);
    }
  }

  /// Keys and values [k0, k1) of that strip come next.
  void look_ahead(const AttentionStrip& next, std::int64_t k0, std::int64_t k1) {
    k_ahead_ = {next.k_ + k0 * a_.k.strides[2], a_.k.strides[2], k1 - k0, dim_};
    v_ahead_ = {next.v_ + k0 * a_.v.strides[2], a_.v.strides[2], k1 - k0, values_};
  }

  void tile(std::int64_t k0, std::int64_t k1, const std::uint64_t* bits) {
    const std::int64_t keys = k1 - k0;
    V top[Vectors];
    unroll<Vectors>([&](auto v) { top[v] = V::load(w_.top + v * width); });
    scores(k0, keys, bits, top);
    weights(keys, top);
    const bool hides = bits != nullptr || hooked_;
    hides_ |= hides;
    if (hides && exact_ && !finite(k0, keys, bits))
      accumulate_exactly(k0, keys);
    else
      accumulate(k0, keys);
  }

  /// Sᵀ of the tile, masked and with the hooks, and its maximum.
  void scores(std::int64_t k0, std::int64_t keys, const std::uint64_t* bits, V (&top)[Vectors]) {
    if (hooked_) {
      // Some keys at a time, so that what the hooks read and write is in the first cache: whole blocks of rows, and no
      // more keys than the tile evaluator takes.
      constexpr std::int64_t together = 48;
      for (std::int64_t j = 0; j < keys; j += together) {
        float* s = w_.s + j * ld;
        const std::int64_t some = std::min(together, keys - j);
        if (products_) products<Stage::bare>(k0 + j, some, nullptr, top, s);
        adjust(k0 + j, some, bits == nullptr ? nullptr : bits + j, top, s, j > 0);
      }
    } else if (bits != nullptr) {
      products<Stage::masked>(k0, keys, bits, top, w_.s);
    } else {
      products<Stage::whole>(k0, keys, nullptr, top, w_.s);
    }
  }

  enum class Stage { bare, masked, whole };

  /// The products; what follows them, unless that is hooks, happens while they are still in registers.
  template <Stage stage>
  void products(std::int64_t k0, std::int64_t keys, const std::uint64_t* bits, V (&top)[Vectors], float* s) {
    const std::int64_t stride = a_.k.strides[2];
    const float* k = k_ + k0 * stride;
    for_row_blocks<block_rows<Isa, Vectors>>(keys, [&](auto rows, std::int64_t first) {
      Accumulators<Isa, rows, Vectors> acc;
      acc.clear();
      k_ahead_.take(rows);
      q_ahead_.take(2);
      multiply_rows(acc, k + first * stride, stride, w_.q, ld, dim_);
      acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) {
        if constexpr (stage == Stage::masked)
          x = select(mask_from_bits<Isa>(bits[first + r] >> (v * width)), x, V(-infinity));
        x.store(s + (first + r) * ld + v * width);
        if constexpr (stage != Stage::bare) top[v] = max(x, top[v]);  // in this order NaN does not stay
      });
    });
  }

  /// The hooks: bias, score function, mask bits; then the maximum. `ready`: not the tile's first keys.
  void adjust(std::int64_t k0, std::int64_t keys, const std::uint64_t* bits, V (&top)[Vectors], float* s, bool ready) {
    if (raw_ && products_)
      for (std::int64_t i = 0; i < keys * ld; i += width) (V::load(s + i) * V(a_.scale)).store(s + i);
    if (a_.bias && products_) add_bias(k0, keys, s);
    if (a_.inlined != nullptr && !a_.score->wide) return adjust_inlined(k0, keys, bits, top, s);
    const auto take = [&](std::int64_t first, int count, const auto& rows) {
      V largest[Vectors];  // in registers
      unroll<Vectors>([&](auto v) { largest[v] = top[v]; });
      for (int r = 0; r < count; ++r) {
        float buffer[scalar::TileProgram::max_lanes];
        const float* row = rows(r, buffer);
        unroll<Vectors>([&](auto v) __attribute__((always_inline)) {
          V x = V::load(row + v * width) * V(log2e);
          if (bits != nullptr) x = select(mask_from_bits<Isa>(bits[first + r] >> (v * width)), x, V(-infinity));
          x.store(s + (first + r) * ld + v * width);
          largest[v] = max(x, largest[v]);
        });
      }
      unroll<Vectors>([&](auto v) { top[v] = largest[v]; });
    };
    if (a_.score == nullptr)
      take(0, static_cast<int>(keys), [&](std::int64_t r, float*) { return s + r * ld; });
    else  // for all lanes, so that the scores need not be copied
      score_rows<Isa>(
          *a_.score, s, ld, b_, h_, q0_, ld, k0, keys, w_.score, {w_.q, ld, k_, a_.k.strides[2]}, ready,
          [&](std::int64_t first, int count, std::int64_t, int, const auto& rows) { take(first, count, rows); });
  }

  /// What follows the bias in adjust(), by a function that was compiled for it (inlined_score.hpp).
  void adjust_inlined(std::int64_t k0, std::int64_t keys, const std::uint64_t* bits, V (&top)[Vectors], float* s) {
    float largest[ld];
    unroll<Vectors>([&](auto v) { top[v].store(largest + v * width); });
    a_.inlined({a_.score, s, ld, b_, h_, q0_, k0, keys, bits, largest});
    unroll<Vectors>([&](auto v) { top[v] = V::load(largest + v * width); });
  }

  void add_bias(std::int64_t k0, std::int64_t keys, float* scores) {
    const auto& s = a_.bias.strides;
    const float* at = a_.bias.template as<const float>() + b_ * s[0] + h_ * s[1] + q0_ * s[2] + k0 * s[3];
    if (s[2] == 0) {  // one number for all queries
      for (std::int64_t j = 0; j < keys; ++j) {
        const V x(at[j * s[3]]);
        unroll<Vectors>([&](auto v) {
          float* to = scores + j * ld + v * width;
          (V::load(to) + x).store(to);
        });
      }
      return;
    }
    if (s[2] == 1) {  // the queries of a key lie side by side, as in a bias by distance
      for (std::int64_t j = 0; j < keys; ++j) {
        unroll<Vectors>([&](auto v) {
          const std::int64_t left = count_ - v * width;
          const float* from = at + v * width + j * s[3];
          float* to = scores + j * ld + v * width;
          if (left >= width)
            (V::load(to) + V::load(from)).store(to);
          else if (left > 0)
            (V::load(to) + V::load(from, static_cast<int>(left))).store(to);
        });
      }
      return;
    }
    for (std::int64_t q = 0; q < count_; ++q)
      for (std::int64_t j = 0; j < keys; ++j) scores[j * ld + q] += at[q * s[2] + j * s[3]];
  }

  /// Pᵀ = 2^(Sᵀ − maximum) in place, the running sum, and what earlier outputs are to be multiplied by.
  void weights(std::int64_t keys, const V (&top)[Vectors]) {
    V shift[Vectors], sum[Vectors];
    unroll<Vectors>([&](auto v) {
      const V old = V::load(w_.top + v * width);
      // A lane that has seen nothing yet has the maximum −inf; subtracting 0 instead keeps its weights 0, not NaN.
      shift[v] = select(top[v] == V(-infinity), V(0.0f), top[v]);
      const V alpha = exp2_flushed(old - shift[v]);
      alpha.store(w_.alpha + v * width);
      top[v].store(w_.top + v * width);
      sum[v] = V::load(w_.sum + v * width) * alpha;
    });
    for (std::int64_t j = 0; j < keys; ++j) {
      unroll<Vectors>([&](auto v) __attribute__((always_inline)) {
        float* at = w_.s + j * ld + v * width;
        const V p = exp2_flushed(V::load(at) - shift[v]);
        p.store(at);
        sum[v] += p;
      });
    }
    unroll<Vectors>([&](auto v) { sum[v].store(w_.sum + v * width); });
  }

  void accumulate(std::int64_t k0, std::int64_t keys) {
    const float* v0 = v_ + k0 * a_.v.strides[2];
    const std::int64_t blocks = std::max<std::int64_t>(ceil_div(values_, block_rows<Isa, Vectors>), 1);
    const std::int64_t some = ceil_div(v_ahead_.rows, blocks);
    for_row_blocks<block_rows<Isa, Vectors>>(values_, [&](auto rows, std::int64_t first) {
      Accumulators<Isa, rows, Vectors> acc;
      float* o = w_.o + first * ld;
      v_ahead_.take(some);
      out_ahead_.take(6);
      acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) {
        x = V::load(o + r * ld + v * width) * V::load(w_.alpha + v * width);
      });
      multiply_columns(acc, v0 + first, a_.v.strides[2], w_.s, ld, keys);
      acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) { x.store(o + r * ld + v * width); });
    });
  }

  /// Of the strip's queries, before finish().
  bool finite_outputs() const {
    V zero[Vectors];
    unroll<Vectors>([&](auto v) { zero[v] = V(0.0f); });
    for (std::int64_t e = 0; e < values_; ++e)
      unroll<Vectors>([&](auto v) {
        const auto n = static_cast<int>(std::clamp<std::int64_t>(count_ - v * width, 0, width));
        zero[v] = fma(V::load(w_.o + e * ld + v * width, n), V(0.0f), zero[v]);
      });
    bool finite = true;
    unroll<Vectors>([&](auto v) { finite &= !any(zero[v] != V(0.0f)); });
    return finite;
  }

  /// Whether the values that not every query sees are finite numbers. Without bits: every value, as a score function
  /// hides keys too.
  bool finite(std::int64_t k0, std::int64_t keys, const std::uint64_t* bits) const {
    const std::uint64_t all = count_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count_) - 1;
    // Four rows at a time: each sum of zeros is a chain, and one chain alone would wait for every fma.
    constexpr int rows = 4;
    V zero[rows];
    unroll<rows>([&](auto r) { zero[r] = V(0.0f); });
    for (std::int64_t j = 0; j < keys; j += rows) {
      if (bits != nullptr && !hooked_) {
        std::uint64_t seen = all;
        for (std::int64_t i = j; i < std::min(j + rows, keys); ++i) seen &= bits[i];
        if (seen == all) continue;
      }
      const float* row[rows];
      unroll<rows>([&](auto r) { row[r] = v_ + (k0 + std::min<std::int64_t>(j + r, keys - 1)) * a_.v.strides[2]; });
      for (std::int64_t e = 0; e < values_; e += width) {
        const int n = static_cast<int>(std::min<std::int64_t>(width, values_ - e));
        unroll<rows>([&](auto r) { zero[r] = fma(V::load(row[r] + e, n), V(0.0f), zero[r]); });
      }
    }
    return !any(zero[0] + zero[1] + (zero[2] + zero[3]) != V(0.0f));
  }

  /// The same sum as accumulate(), in the same order, but a lane with weight 0 keeps what it has.
  void accumulate_exactly(std::int64_t k0, std::int64_t keys) {
    for (std::int64_t e = 0; e < values_; ++e) {
      unroll<Vectors>([&](auto v) {
        float* o = w_.o + e * ld + v * width;
        V x = V::load(o) * V::load(w_.alpha + v * width);
        for (std::int64_t j = 0; j < keys; ++j) {
          const V p = V::load(w_.s + j * ld + v * width);
          x = select(p != V(0.0f), fma(V(v_[(k0 + j) * a_.v.strides[2] + e]), p, x), x);
        }
        x.store(o);
      });
    }
  }

  void finish() {
    unroll<Vectors>([&](auto v) {
      const V top = V::load(w_.top + v * width), sum = V::load(w_.sum + v * width);
      V factor(1.0f), denominator = sum;
      if (a_.sink) {  // joins the denominator only
        const V sink(a_.sink.template as<const float>()[h_ * a_.sink.strides[0]] * log2e);
        const V larger = max(top, sink);
        factor = exp2_flushed(top - larger);
        denominator = fma(sum, factor, exp2_flushed(sink - larger));
      }
      select(sum == V(0.0f), V(0.0f), factor / denominator).store(w_.alpha + v * width);
    });
    for (std::int64_t e = 0; e < values_; ++e) {
      unroll<Vectors>([&](auto v) {
        float* o = w_.o + e * ld + v * width;
        (V::load(o) * V::load(w_.alpha + v * width)).store(o);
      });
    }
    transpose_out<Isa>(w_.o, ld, count_, values_, row_of<float>(a_.out, q0_), a_.out.strides[2]);
    if (!a_.lse) return;
    float* lse = row_of<float>(a_.lse, q0_);
    for (std::int64_t q = 0; q < count_; ++q) {
      const double sum = w_.sum[q];
      lse[q * a_.lse.strides[2]] =
          sum == 0 ? -infinity
                   : static_cast<float>(static_cast<double>(w_.top[q]) * 0.69314718055994531 + std::log(sum));
    }
  }

  /// Row q of this head.
  template <class T>
  T* row_of(const TensorView& t, std::int64_t q) const {
    return t.template as<T>() + b_ * t.strides[0] + h_ * t.strides[1] + q * t.strides[2];
  }

  const kernel::Attention& a_;
  AttentionWork<Isa> w_;
  std::int64_t b_, h_, q0_, count_, dim_, values_;
  const float *k_, *v_;
  Ahead k_ahead_, v_ahead_, q_ahead_, out_ahead_;  // taken a few rows at a time, so that few tiles take them all
  bool hooked_;
  bool hides_ = false, exact_ = false;  // some weights may be 0 for values that must not be seen; care is taken of them
  bool raw_, products_;  // sums over features need queries without the scale; not every function needs q·k
};

/// How many heads a work item has: those that share a mask, as far as 128 KiB hold them.
template <class Isa>
std::int64_t heads_together(const kernel::Attention& a) {
  if (a.mask == nullptr || a.mask->depends_on_head()) return 1;
  std::int64_t heads = std::min(AttentionStrip<Isa, 1>::most_heads, a.q.shape[1]);
  while (heads > 1 && AttentionWork<Isa>(a, nullptr, heads).bytes > 128 * 1024) --heads;
  return std::max<std::int64_t>(heads, 1);
}

template <class Isa>
kernel::Work plan_attention(const kernel::Attention& a) {
  const auto& s = a.q.shape;
  const std::int64_t together = heads_together<Isa>(a);
  const AttentionWork<Isa> work(a, nullptr, together);
  return {static_cast<std::size_t>(s[0] * ceil_div(s[1], together) * ceil_div(s[2], work.strip)), work.bytes,
          std::min(work.strip, s[2]), work.block};
}

template <class Isa>
void run_attention(const kernel::Attention& a, std::size_t first, std::size_t last, void* workspace) {
  const std::int64_t together = heads_together<Isa>(a), heads = a.q.shape[1], groups = ceil_div(heads, together);
  const AttentionWork<Isa> work(a, workspace, together);
  const std::int64_t strip = work.strip, length = a.q.shape[2], strips = ceil_div(length, strip);
  for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item) {
    const std::int64_t group = item / strips, b = group / groups, h = group % groups * together;
    const std::int64_t q0 = (strips - 1 - item % strips) * strip;  // under a causal mask the longest strip comes first
    const std::int64_t count = std::min(strip, length - q0);
    with_vectors<Isa, most_vectors<Isa>>(count, [&](auto vectors) {
      AttentionStrip<Isa, vectors>::run(a, work, b, h, std::min(together, heads - h), q0, count);
    });
  }
}

}  // namespace treadle::simd

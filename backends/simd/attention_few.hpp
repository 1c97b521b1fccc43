#pragma once
// Attention of one to four queries, as a decoder's step asks for: keys lie in the lanes of scores, values in the lanes
// of outputs, and what is read of memory is each key and value once, for all query heads that share them.
//
// Same softmax as attention.hpp: online, in base 2, scale·log2 e in the queries. No bias and no score function. Many
// keys are cut into parts, which are joined at the end: so a single head of a long sequence is work for several
// threads.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/transpose.hpp>
#include <treadle/graph/mask/evaluate.hpp>

#include <cmath>
#include <limits>

namespace treadle::simd {

template <class Isa>
struct FewQueriesWork {
  static constexpr std::int64_t block = 64;  // keys and values of a block stay in the first cache
  std::int64_t rows, dim, values;            // queries of the heads that share keys; padded to whole vectors
  float *q, *o, *s, *top, *sum;              // [rows][dim], [rows][values], [block], [rows], [rows]
  void* tiles;
  std::size_t bytes;

  FewQueriesWork(const kernel::Attention& a, void* base)
      : rows(a.q.shape[1] / std::max<std::int64_t>(a.k.shape[1], 1) * a.q.shape[2]),
        dim(round_up(a.q.shape[3], Vec<Isa>::width)),
        values(round_up(a.v.shape[3], Vec<Isa>::width)) {
    Carver c(base);
    q = c.floats(rows * dim);
    o = c.floats(rows * values);
    s = c.floats(block);
    top = c.floats(rows);
    sum = c.floats(rows);
    tiles = c.bytes(a.mask != nullptr ? a.mask->workspace_bytes() : 0);
    bytes = c.used();
  }
};

/// A row of the output, and of the log-sum-exp, from Σ 2^(s − top) v and Σ 2^(s − top).
template <class Isa>
void write_row(const float* o, float top, float sum, std::int64_t values, const float* sink, float* out, float* lse) {
  using V = Vec<Isa>;
  constexpr float log2e = 1.44269504f;
  float factor = 1.0f, denominator = sum;
  if (sink != nullptr) {  // joins the denominator only
    const float base2 = *sink * log2e, larger = std::max(top, base2);
    factor = std::exp2(top - larger);
    denominator = std::fma(sum, factor, std::exp2(base2 - larger));
  }
  const V scale(sum == 0.0f ? 0.0f : factor / denominator);
  for (std::int64_t e = 0; e < values; e += V::width) {
    const int n = static_cast<int>(std::min<std::int64_t>(V::width, values - e));
    (V::load(o + e, n) * scale).store(out + e, n);
  }
  if (lse != nullptr)
    *lse = sum == 0.0f ? -std::numeric_limits<float>::infinity()
                       : static_cast<float>(static_cast<double>(top) * 0.69314718055994531 + std::log(double{sum}));
}

template <class Isa>
class FewQueries {
 public:
  /// Query heads [h0, h0 + heads) of batch element b, which share key head kv and see the same keys.
  FewQueries(const kernel::Attention& a, const FewQueriesWork<Isa>& w, std::int64_t b, std::int64_t kv, std::int64_t h0,
             std::int64_t heads, std::int64_t part)
      : a_(a), w_(w), b_(b), h0_(h0), queries_(a.q.shape[2]), rows_(heads * queries_), part_(part) {
    if (a.parts) {
      begin_ = part * kernel::keys_of_a_part;
      end_ = std::min(begin_ + kernel::keys_of_a_part, a.k.shape[2]);
    } else {
      end_ = a.k.shape[2];
    }
    k_ = a.k.template as<const float>() + b * a.k.strides[0] + kv * a.k.strides[1];
    v_ = a.v.template as<const float>() + b * a.v.strides[0] + kv * a.v.strides[1];
  }

  void run() {
    for (std::int64_t r = 0; r < rows_; ++r) begin(r);
    each_tile([&](std::int64_t k0, std::int64_t k1, const std::uint64_t* bits) {
      prefetch(v_ + k0 * a_.v.strides[2], a_.v.strides[2], k1 - k0, a_.v.shape[3]);
      for (std::int64_t r = 0; r < rows_; ++r) tile(r, k0, k1 - k0, bits);
      const std::int64_t next = std::min(k1 + W::block, end_);
      prefetch(k_ + k1 * a_.k.strides[2], a_.k.strides[2], next - k1, a_.k.shape[3]);
    });
    for (std::int64_t r = 0; r < rows_; ++r) finish(r);
  }

 private:
  using V = Vec<Isa>;
  using W = FewQueriesWork<Isa>;
  static constexpr int width = V::width;
  static constexpr float log2e = 1.44269504f;
  static constexpr float infinity = std::numeric_limits<float>::infinity();

  static int lanes(std::int64_t left) { return static_cast<int>(std::min<std::int64_t>(width, left)); }
  static void prefetch(const float* first, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
    for (std::int64_t j = 0; j < rows; ++j)
      for (std::int64_t c = 0; c < columns; c += 16) __builtin_prefetch(first + j * stride + c);
  }
  template <class T>
  T* row_of(const TensorView& t, std::int64_t r) const {
    return t.template as<T>() + b_ * t.strides[0] + (h0_ + r / queries_) * t.strides[1] + r % queries_ * t.strides[2];
  }

  template <class F>
  void each_tile(F&& f) {
    if (a_.mask == nullptr) {
      for (std::int64_t k = begin_; k < end_; k += W::block) f(k, std::min(k + W::block, end_), nullptr);
      return;
    }
    static_assert(kernel::keys_of_a_part % W::block == 0);  // no tile lies in two parts
    auto stream = a_.mask->stream(b_, h0_, 0, queries_, W::block, w_.tiles, &mask::evaluators<Isa>);
    stream.start_at(begin_);
    mask::Tile t;
    while (stream.next(t) && t.k0 < end_) f(t.k0, t.k1, t.full ? nullptr : t.bits);
  }

  void begin(std::int64_t r) {
    const float* q = row_of<const float>(a_.q, r);
    for (std::int64_t d = 0; d < a_.q.shape[3]; d += width)
      (V::load(q + d, lanes(a_.q.shape[3] - d)) * V(a_.scale * log2e)).store(w_.q + r * w_.dim + d);
    std::fill_n(w_.o + r * w_.values, w_.values, 0.0f);
    w_.top[r] = -infinity;
    w_.sum[r] = 0.0f;
  }

  void tile(std::int64_t r, std::int64_t k0, std::int64_t keys, const std::uint64_t* bits) {
    const std::int64_t query = r % queries_;
    V most(w_.top[r]);
    for (std::int64_t j = 0; j < keys; j += width) {
      V s = scores(r, k0, j, keys);
      std::uint64_t seen = keys - j < width ? (std::uint64_t{1} << (keys - j)) - 1 : ~std::uint64_t{0};
      if (bits != nullptr) {
        std::uint64_t allowed = 0;
        for (std::int64_t i = 0; i < std::min<std::int64_t>(width, keys - j); ++i)
          allowed |= (bits[j + i] >> query & 1) << i;
        seen &= allowed;
      }
      s = select(mask_from_bits<Isa>(seen), s, V(-infinity));
      s.store(w_.s + j);
      most = max(s, most);  // in this order NaN does not stay
    }
    const float largest = reduce_max(most);
    if (largest == -infinity) return;
    const V alpha = exp2_flushed(V(w_.top[r] - largest));
    V sum(0.0f);
    for (std::int64_t j = 0; j < keys; j += width) {
      const V p = exp2_flushed(V::load(w_.s + j) - V(largest));
      p.store(w_.s + j);
      sum += p;
    }
    float factor[width];
    alpha.store(factor);
    w_.sum[r] = w_.sum[r] * factor[0] + reduce_add(sum);
    w_.top[r] = largest;
    accumulate(r, k0, keys, bits, alpha);
  }

  /// Of keys [j, j + width) of the tile; keys past its end are the last one again.
  V scores(std::int64_t r, std::int64_t k0, std::int64_t j, std::int64_t keys) const {
    const float* row[width];
    V sum[width];
    for (int i = 0; i < width; ++i) {
      row[i] = k_ + (k0 + std::min(j + i, keys - 1)) * a_.k.strides[2];
      sum[i] = V(0.0f);
    }
    const float* q = w_.q + r * w_.dim;
    std::int64_t d = 0;
    for (; d + width <= a_.k.shape[3]; d += width) {
      const V x = V::load(q + d);
      for (int i = 0; i < width; ++i) sum[i] = fma(V::load(row[i] + d), x, sum[i]);
    }
    if (const int n = lanes(a_.k.shape[3] - d); n > 0) {
      const V x = V::load(q + d);
      for (int i = 0; i < width; ++i) sum[i] = fma(V::load(row[i] + d, n), x, sum[i]);
    }
    add_across<width / 2>(sum);
    return sum[0];
  }

  void accumulate(std::int64_t r, std::int64_t k0, std::int64_t keys, const std::uint64_t* bits, V alpha) {
    constexpr int most = 4;
    const std::int64_t values = a_.v.shape[3];
    std::int64_t e = 0;
    for (; e + most * width <= values; e += most * width) accumulate<most>(r, k0, keys, bits, alpha, e, width);
    for (; e < values; e += width) accumulate<1>(r, k0, keys, bits, alpha, e, lanes(values - e));
  }

  /// Even and odd keys are added apart: two chains for each vector.
  template <int Vectors>
  void accumulate(std::int64_t r, std::int64_t k0, std::int64_t keys, const std::uint64_t* bits, V alpha,
                  std::int64_t e, int n) {
    float* o = w_.o + r * w_.values + e;
    V even[Vectors], odd[Vectors];
    unroll<Vectors>([&](auto v) {
      even[v] = V::load(o + v * width) * alpha;
      odd[v] = V(0.0f);
    });
    const auto add = [&](std::int64_t j, V(&to)[Vectors]) __attribute__((always_inline)) {
      const float* row = v_ + (k0 + j) * a_.v.strides[2] + e;
      const V p(w_.s[j]);
      unroll<Vectors>([&](auto v) __attribute__((always_inline)) {
        to[v] = fma(p, n == width ? V::load(row + v * width) : V::load(row, n), to[v]);
      });
    };
    std::int64_t j = 0;
    if (bits == nullptr) {
      for (; j + 2 <= keys; j += 2) {
        add(j, even);
        add(j + 1, odd);
      }
      if (j < keys) add(j, even);
    } else {  // a value that is not seen is not read: 0·NaN is NaN
      for (; j < keys; ++j)
        if ((bits[j] >> (r % queries_) & 1) != 0) add(j, j % 2 == 0 ? even : odd);
    }
    unroll<Vectors>([&](auto v) { (even[v] + odd[v]).store(o + v * width); });
  }

  void finish(std::int64_t r) {
    const std::int64_t values = a_.v.shape[3];
    const float* o = w_.o + r * w_.values;
    if (a_.parts) {
      float* part = row_of<float>(a_.parts, r) + part_ * a_.parts.strides[3];
      std::copy_n(o, values, part);
      part[values] = w_.top[r];
      part[values + 1] = w_.sum[r];
      return;
    }
    const float* sink =
        a_.sink ? a_.sink.template as<const float>() + (h0_ + r / queries_) * a_.sink.strides[0] : nullptr;
    write_row<Isa>(o, w_.top[r], w_.sum[r], values, sink, row_of<float>(a_.out, r),
                   a_.lse ? row_of<float>(a_.lse, r) : nullptr);
  }

  const kernel::Attention& a_;
  const W& w_;
  std::int64_t b_, h0_, queries_, rows_, part_;
  std::int64_t begin_ = 0, end_;  // the keys
  const float *k_, *v_;
};

template <class Isa>
kernel::Work plan_attention_few(const kernel::Attention& a) {
  const std::int64_t parts = a.parts ? a.parts.shape[3] : 1;
  return {static_cast<std::size_t>(a.q.shape[0] * a.k.shape[1] * parts), FewQueriesWork<Isa>(a, nullptr).bytes,
          a.q.shape[2], FewQueriesWork<Isa>::block};
}

template <class Isa>
void run_attention_few(const kernel::Attention& a, std::size_t first, std::size_t last, void* workspace) {
  const FewQueriesWork<Isa> work(a, workspace);
  const std::int64_t kv_heads = a.k.shape[1], group = a.q.shape[1] / kv_heads, parts = a.parts ? a.parts.shape[3] : 1;
  const std::int64_t together = a.mask != nullptr && a.mask->depends_on_head() ? 1 : group;
  for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item) {
    const std::int64_t part = item % parts, kv = item / parts % kv_heads, b = item / parts / kv_heads;
    for (std::int64_t h = 0; h < group; h += together)
      FewQueries<Isa>(a, work, b, kv, kv * group + h, together, part).run();
  }
}

template <class Isa>
kernel::Work plan_join_attention(const kernel::JoinAttention& a) {
  const std::int64_t values = round_up(a.out.shape[3], Vec<Isa>::width);
  return {static_cast<std::size_t>(a.out.shape[0] * a.out.shape[1] * a.out.shape[2]),
          static_cast<std::size_t>(values) * sizeof(float)};
}

template <class Isa>
void run_join_attention(const kernel::JoinAttention& a, std::size_t first, std::size_t last, void* workspace) {
  using V = Vec<Isa>;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::int64_t heads = a.out.shape[1], queries = a.out.shape[2], values = a.out.shape[3];
  auto* o = static_cast<float*>(workspace);
  for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item) {
    const std::int64_t q = item % queries, h = item / queries % heads, b = item / queries / heads;
    const auto row = [&](const TensorView& t) {
      return t.as<float>() + b * t.strides[0] + h * t.strides[1] + q * t.strides[2];
    };
    const float* parts = row(a.parts);
    float top = -infinity, sum = 0.0f;
    for (std::int64_t i = 0; i < a.parts.shape[3]; ++i) top = std::max(top, parts[i * a.parts.strides[3] + values]);
    std::fill_n(o, round_up(values, V::width), 0.0f);
    for (std::int64_t i = 0; i < a.parts.shape[3]; ++i) {
      const float* part = parts + i * a.parts.strides[3];
      if (part[values] == -infinity) continue;  // sees nothing
      const float factor = std::exp2(part[values] - top);
      sum = std::fma(part[values + 1], factor, sum);
      for (std::int64_t e = 0; e < values; e += V::width) {
        const int n = static_cast<int>(std::min<std::int64_t>(V::width, values - e));
        fma(V::load(part + e, n), V(factor), V::load(o + e)).store(o + e);
      }
    }
    write_row<Isa>(o, top, sum, values, a.sink ? a.sink.template as<const float>() + h * a.sink.strides[0] : nullptr,
                   row(a.out), a.lse ? row(a.lse) : nullptr);
  }
}

}  // namespace treadle::simd

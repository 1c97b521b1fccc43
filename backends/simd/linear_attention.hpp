#pragma once
// Linear attention in chunks, or without a state. In chunks, the state is S = Σ φ(k) [v | 1], head_dim × (value_dim +
// 1): its last column is z, the sum of φ(k). Values lie in the lanes, tokens in the rows, so that queries, values and
// outputs are where they are; only the keys of a chunk are transposed, for the products of queries and keys:
//
//   O = φ(Q) S + (mask ∘ φ(Q) φ(K)ᵀ) V      then      S += φ(K)ᵀ V
//
// Without a state, every query meets every key that it sees, a chunk of each at a time: q·k·(head_dim + value_dim)
// multiplications instead of (q + k)·head_dim·value_dim, and chunks of queries are independent work. For short
// sequences.
//
// Row i sees keys below min(i + k_len − q_len + 1, key length) if causal, below the key length otherwise.
//
// Token by token, S lies in the caller's memory and the values lie in the lanes: a step with one query costs two passes
// over S and no chunk.
//
// Exponentials: row d of S is kept relative to level_d, the largest exponent of feature d among the keys absorbed so
// far, as in online softmax: where a key brings a larger one, the row is scaled down. A query takes its weights
// relative to its largest q_d + level_d. So the term that matters most is exactly 1 and the denominator at least 1,
// whatever the norms of keys and queries. In a chunk, queries would see levels that later keys raised: where that is by
// more than `most_raised`, the chunk is done token by token. Keys that are never seen, NaN included, have no part in
// it.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/ahead.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/transpose.hpp>

#include <limits>

namespace treadle::simd {

template <class Isa>
struct LinearAttentionWork {
  static constexpr std::int64_t chunk = Shape<Isa>::lanes, keys = 2 * chunk;  // queries at a time; keys that S takes
  std::int64_t width, columns;  // of a row of S, and of an output: whole vectors
  float *state, *q, *o, *k;     // [dim][width], [chunk][dim], [chunk][columns], [keys][dim]
  float *v, *k_lanes, *scores;  // [keys][columns] or nothing, [dim][chunk], [chunk][chunk]
  float *z, *denominator;       // [dim], [chunk]
  float *level, *factor;        // [dim], of exponentials
  float *one_key, *one_value;   // [dim], [v | 1]: token by token
  std::size_t bytes;

  LinearAttentionWork(const kernel::LinearAttention& a, void* base, bool one_token = false)
      : width(round_up(a.v.shape[3] + 1, Vec<Isa>::width)), columns(round_up(a.v.shape[3], Vec<Isa>::width)) {
    const std::int64_t dim = a.q.shape[3], whole = round_up(dim, Vec<Isa>::width), tokens = one_token ? 1 : chunk;
    const bool in_place = one_token || columns == a.v.shape[3];
    Carver c(base);
    state = c.floats(one_token && a.state ? 0 : dim * width);
    q = c.floats(tokens * dim);
    o = c.floats(std::max(tokens * columns, width));
    k = c.floats(one_token ? 0 : keys * dim);
    v = c.floats(in_place ? 0 : keys * columns);
    k_lanes = c.floats(one_token ? 0 : dim * chunk);
    scores = c.floats(one_token ? 0 : chunk * chunk);
    z = c.floats(one_token ? 0 : whole);
    denominator = c.floats(one_token ? 0 : chunk);
    const std::int64_t levels = a.feature == kernel::Feature::exponentials ? whole : 0;
    level = c.floats(levels);
    factor = c.floats(levels);
    one_key = c.floats(dim);
    one_value = c.floats(width);
    bytes = c.used();
  }
};

template <class Isa>
class LinearAttentionHead {
 public:
  LinearAttentionHead(const kernel::LinearAttention& a, const LinearAttentionWork<Isa>& w, std::int64_t b,
                      std::int64_t h)
      : a_(a),
        w_(w),
        b_(b),
        h_(h),
        dim_(a.q.shape[3]),
        values_(a.v.shape[3]),
        exponents_(a.feature == kernel::Feature::exponentials) {
    const std::int64_t kv = h / (a.q.shape[1] / a.k.shape[1]);
    q_ = a.q.template as<const float>() + b * a.q.strides[0] + h * a.q.strides[1];
    k_ = a.k.template as<const float>() + b * a.k.strides[0] + kv * a.k.strides[1];
    v_ = a.v.template as<const float>() + b * a.v.strides[0] + kv * a.v.strides[1];
    out_ = a.out.template as<float>() + b * a.out.strides[0] + h * a.out.strides[1];
    keys_ = a.k.shape[2];
    if (a.key_lengths) {
      const std::int64_t length = a.key_lengths.template as<const std::int32_t>()[b * a.key_lengths.strides[0]];
      keys_ = std::clamp<std::int64_t>(length, 0, keys_);
    }
  }

  void run() {
    load_state();
    const std::int64_t q_len = a_.q.shape[2], offset = a_.k.shape[2] - q_len;
    std::int64_t seen = 0;
    const auto absorb_until = [&](std::int64_t end) {
      for (; seen < end; seen += std::min(W::keys, end - seen)) {
        load_keys(seen, std::min(W::keys, end - seen));
        update(std::min(W::keys, end - seen));
      }
    };
    if (!a_.causal) absorb_until(keys_);
    rows_ = w_.state;
    row_stride_ = w_.width;
    for (std::int64_t q0 = 0; q0 < q_len; q0 += W::chunk) {
      const std::int64_t count = std::min(W::chunk, q_len - q0);
      if (a_.causal) absorb_until(std::clamp<std::int64_t>(q0 + offset, 0, keys_));
      // Keys that some but not all queries of the chunk see; query q0 + i sees those below q0 + i + offset + 1.
      const std::int64_t last = a_.causal ? std::clamp<std::int64_t>(q0 + count + offset, 0, keys_) : seen,
                         fresh = last - seen;
      if (exponents_ && fresh > 0 && raised_late(seen, fresh, seen <= q0 + offset ? 1 : 0)) {
        for (std::int64_t i = q0; i < q0 + count; ++i) {
          for (; seen < std::min(i + offset + 1, last); ++seen) absorb(seen);
          answer(i);
        }
        continue;
      }
      if (fresh > 0) load_keys(seen, fresh);
      load_queries(q0, count);
      from_state(count);
      if (fresh > 0) {
        within_chunk(count, fresh, q0 + offset + 1 - seen);
        update(fresh);
        seen = last;
      }
      finish(q0, count);
    }
    if (a_.state) absorb_until(keys_);  // without queries nobody has asked for them
    store_state();
  }

  /// Token by token, in the caller's state if there is one.
  void run_recurrent() {
    if (a_.state) {
      rows_ = state_of_caller();
      row_stride_ = a_.state.strides[2];
      load_levels();
    } else {
      load_state();
      rows_ = w_.state;
      row_stride_ = w_.width;
    }
    const std::int64_t q_len = a_.q.shape[2], offset = a_.k.shape[2] - q_len;
    std::int64_t seen = 0;
    const auto absorb_until = [&](std::int64_t end) {
      for (; seen < end; ++seen) absorb(seen);
    };
    if (!a_.causal) absorb_until(keys_);
    for (std::int64_t i = 0; i < q_len; ++i) {
      if (a_.causal) absorb_until(std::min(i + offset + 1, keys_));
      answer(i);
    }
    if (!a_.state) return;
    absorb_until(keys_);  // without queries nobody has asked for them
    store_levels();
  }

  /// The queries [q0, q0 + chunk) alone, without a state.
  void run_quadratic(std::int64_t q0) {
    const std::int64_t q_len = a_.q.shape[2], offset = a_.k.shape[2] - q_len, count = std::min(W::chunk, q_len - q0);
    const std::int64_t end = a_.causal ? std::clamp<std::int64_t>(q0 + count + offset, 0, keys_) : keys_;
    load_queries(q0, count);
    std::fill_n(w_.o, count * w_.columns, 0.0f);
    std::fill_n(w_.denominator, count, 0.0f);
    for (std::int64_t k0 = 0; k0 < end; k0 += W::chunk) {
      const std::int64_t keys = std::min(W::chunk, end - k0);
      load_keys(k0, keys);
      within_chunk(count, keys, a_.causal ? q0 + offset + 1 - k0 : keys);
    }
    finish(q0, count);
  }

 private:
  using V = Vec<Isa>;
  using W = LinearAttentionWork<Isa>;
  static constexpr int width = V::width;
  static constexpr float lowest = -std::numeric_limits<float>::max();  // finite: −inf − −inf is NaN
  static constexpr float most_raised = 60.0f;  // exp(−60) ≈ 10⁻²⁶: far from underflow, in products too

  V feature(V x) const {
    switch (a_.feature) {
      case kernel::Feature::relu: return relu(x);
      case kernel::Feature::elu_plus_one: return elu_plus_one(x);
      default: return x;
    }
  }
  int lanes(std::int64_t left) const { return static_cast<int>(std::min<std::int64_t>(width, left)); }

  float* state_of_caller() const {
    return a_.state.template as<float>() + b_ * a_.state.strides[0] + h_ * a_.state.strides[1];
  }
  void load_state() {
    std::fill_n(w_.state, dim_ * w_.width, 0.0f);
    load_levels();
    if (!a_.state) return;
    for (std::int64_t d = 0; d < dim_; ++d)
      std::copy_n(state_of_caller() + d * a_.state.strides[2], values_ + 1, w_.state + d * w_.width);
  }
  void store_state() const {
    if (!a_.state) return;
    for (std::int64_t d = 0; d < dim_; ++d)
      std::copy_n(w_.state + d * w_.width, values_ + 1, state_of_caller() + d * a_.state.strides[2]);
    store_levels();
  }
  /// A row without a key has no level.
  void load_levels() {
    if (!exponents_) return;
    for (std::int64_t d = 0; d < dim_; ++d) {
      const float* row = a_.state ? state_of_caller() + d * a_.state.strides[2] + values_ : nullptr;
      w_.level[d] = row == nullptr || row[0] == 0.0f ? lowest : row[1];
    }
    find_highest();
  }
  void store_levels() const {
    for (std::int64_t d = 0; exponents_ && d < dim_; ++d) {
      float* row = state_of_caller() + d * a_.state.strides[2] + values_;
      row[1] = row[0] == 0.0f ? 0.0f : w_.level[d];
    }
  }

  /// φ(K), and V with zeros up to whole vectors unless it has them.
  void load_keys(std::int64_t first, std::int64_t count) {
    if (exponents_) raise_to(first, count, w_.state, w_.width);
    const std::int64_t next = first + count, left = std::min(W::keys, keys_ - next);
    Ahead ahead{k_ + next * a_.k.strides[2], a_.k.strides[2], left, dim_};
    v_ahead_ = {v_ + next * a_.v.strides[2], a_.v.strides[2], left, values_};
    for (std::int64_t j = 0; j < count; ++j) {
      ahead.take(1);
      load_key(first + j, w_.k + j * dim_);
    }
    const float* v = v_ + first * a_.v.strides[2];
    if (w_.columns == values_) {
      chunk_v_ = v;
      chunk_stride_ = a_.v.strides[2];
      return;
    }
    chunk_v_ = w_.v;
    chunk_stride_ = w_.columns;
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t e = 0; e < values_; e += width)
        V::load(v + j * a_.v.strides[2] + e, lanes(values_ - e)).store(w_.v + j * w_.columns + e);
  }
  void load_key(std::int64_t j, float* key) const {
    const float* k = k_ + j * a_.k.strides[2];
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      const V x = V::load(k + d, n);
      (exponents_ ? exp(x - V::load(w_.level + d, n)) : feature(x)).store(key + d, n);
    }
  }

  void load_queries(std::int64_t q0, std::int64_t count) {
    const std::int64_t next = q0 + count, left = std::min(W::chunk, a_.q.shape[2] - next);
    Ahead ahead{q_ + next * a_.q.strides[2], a_.q.strides[2], left, dim_};
    out_ahead_ = {out_ + next * a_.out.strides[2], a_.out.strides[2], left, values_};
    for (std::int64_t i = 0; i < count; ++i) {
      ahead.take(1);
      load_query(q0 + i, w_.q + i * dim_);
    }
  }
  /// φ(q); exponents relative to the largest.
  void load_query(std::int64_t i, float* to) const {
    const float* q = q_ + i * a_.q.strides[2];
    V largest(lowest);
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      const V x =
          exponents_ ? V::load(q + d, n) + (V::load(w_.level + d, n) - V(highest_)) : feature(V::load(q + d, n));
      x.store(to + d, n);
      if (!exponents_) continue;
      largest = max(n == width ? x : select(mask_from_bits<Isa>((std::uint64_t{1} << n) - 1), x, largest), largest);
    }
    if (!exponents_) return;
    const V top(reduce_max(largest));
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      exp(V::load(to + d, n) - top).store(to + d, n);
    }
  }

  /// max(level, the finite exponents of the keys), for the features from d on.
  V raised(V level, std::int64_t d, int n, std::int64_t first, std::int64_t count) const {
    for (std::int64_t j = first; j < first + count; ++j) {
      const V x = V::load(k_ + j * a_.k.strides[2] + d, n);
      // An infinite one reaches those who see it, not the level; NaN neither.
      level = max(select(x <= V(-lowest), x, V(lowest)), level);
    }
    return level;
  }

  /// Whether these keys raise some level by more than `most_raised` over what every query of the chunk sees, the keys
  /// before them and the first `common`.
  bool raised_late(std::int64_t first, std::int64_t count, std::int64_t common) const {
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      const V at_first = raised(V::load(w_.level + d, n), d, n, first, common);
      if (any(V(most_raised) < raised(at_first, d, n, first + common, count - common) - at_first)) return true;
    }
    return false;
  }

  /// What queries take the levels relative to: large ones that are near each other keep the digits of their difference.
  void find_highest() {
    highest_ = lowest;
    for (std::int64_t d = 0; d < dim_; ++d) highest_ = std::max(highest_, w_.level[d]);
  }

  /// Raises the levels to those of these keys too, and scales the rows of S to them.
  void raise_to(std::int64_t first, std::int64_t count, float* rows, std::int64_t stride) {
    bool changed = false;
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      const V before = V::load(w_.level + d, n), after = raised(before, d, n, first, count);
      exp(before - after).store(w_.factor + d, n);
      after.store(w_.level + d, n);
      changed = changed || any(before < after);
    }
    if (!changed) return;
    find_highest();
    for (std::int64_t d = 0; d < dim_; ++d) {
      if (w_.factor[d] == 1.0f) continue;
      float* row = rows + d * stride;
      for (std::int64_t e = 0; e <= values_; e += width) {
        const int n = lanes(values_ + 1 - e);
        (V::load(row + e, n) * V(w_.factor[d])).store(row + e, n);
      }
    }
  }

  /// Key j joins the rows of S, one token.
  void absorb(std::int64_t j) {
    if (exponents_) raise_to(j, 1, rows_, row_stride_);
    load_key(j, w_.one_key);
    std::copy_n(v_ + j * a_.v.strides[2], values_, w_.one_value);
    w_.one_value[values_] = 1.0f;
    std::fill(w_.one_value + values_ + 1, w_.one_value + w_.width, 0.0f);
    for (std::int64_t d = 0; d < dim_; ++d) {
      float* row = rows_ + d * row_stride_;
      const V k(w_.one_key[d]);
      std::int64_t e = 0;
      for (; e + width <= values_ + 1; e += width) fma(k, V::load(w_.one_value + e), V::load(row + e)).store(row + e);
      const int n = lanes(values_ + 1 - e);
      if (n > 0) fma(k, V::load(w_.one_value + e), V::load(row + e, n)).store(row + e, n);
    }
  }

  /// The output of query i from the rows of S, one token.
  void answer(std::int64_t i) {
    load_query(i, w_.q);
    for (std::int64_t e = 0; e <= values_; e += Shape<Isa>::lanes)
      with_vectors<Isa>(values_ + 1 - e, [&](auto vectors_here) {
        constexpr int count = vectors_here;
        V sum[count];
        int n[count];
        for (int v = 0; v < count; ++v) {
          sum[v] = V(0.0f);
          n[v] = lanes(values_ + 1 - e - v * width);
        }
        for (std::int64_t d = 0; d < dim_; ++d) {
          const float* row = rows_ + d * row_stride_ + e;
          const V x(w_.q[d]);
          for (int v = 0; v < count; ++v)
            sum[v] = fma(x, n[v] == width ? V::load(row + v * width) : V::load(row + v * width, n[v]), sum[v]);
        }
        for (int v = 0; v < count; ++v) sum[v].store(w_.o + e + v * width);
      });
    const float denominator = w_.o[values_] + a_.eps;
    const V factor(denominator == 0.0f ? 0.0f : 1.0f / denominator);
    float* out = out_ + i * a_.out.strides[2];
    for (std::int64_t e = 0; e < values_; e += width) {
      const int n = lanes(values_ - e);
      const V y = V::load(w_.o + e, n) * factor;
      y.store(out + e, n);
    }
  }

  /// S += φ(K)ᵀ V and z += the keys' sum. What a vector past the values has is 0, so z keeps its column.
  void update(std::int64_t keys) {
    const std::int64_t some = ceil_div(keys, std::max<std::int64_t>(ceil_div(dim_, Shape<Isa>::rows), 1));
    for_column_blocks<Isa>(w_.columns, [&](auto vectors, std::int64_t e) {
      for_row_blocks<block_rows<Isa, vectors>>(dim_, [&](auto rows, std::int64_t first) {
        v_ahead_.take(some);
        Accumulators<Isa, rows, vectors> acc;
        float* s = w_.state + first * w_.width + e;
        acc.each([&](auto r, auto v, V& x)
                     __attribute__((always_inline)) { x = V::load(s + r * w_.width + v * width); });
        multiply_columns(acc, w_.k + first, dim_, chunk_v_ + e, chunk_stride_, keys);
        acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) { x.store(s + r * w_.width + v * width); });
      });
    });
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      V sum(0.0f);
      for (std::int64_t j = 0; j < keys; ++j) sum += V::load(w_.k + j * dim_ + d, n);
      float sums[width];
      sum.store(sums);
      for (int i = 0; i < n; ++i) w_.state[(d + i) * w_.width + values_] += sums[i];
    }
  }

  /// O = φ(Q) S, and φ(Q) z.
  void from_state(std::int64_t count) {
    for_column_blocks<Isa>(w_.columns, [&](auto vectors, std::int64_t e) {
      for_row_blocks<block_rows<Isa, vectors>>(count, [&](auto rows, std::int64_t first) {
        out_ahead_.take(rows);
        Accumulators<Isa, rows, vectors> acc;
        acc.clear();
        multiply_rows(acc, w_.q + first * dim_, dim_, w_.state + e, w_.width, dim_);
        acc.each([&](auto r, auto v, V& x)
                     __attribute__((always_inline)) { x.store(w_.o + (first + r) * w_.columns + e + v * width); });
      });
    });
    for (std::int64_t d = 0; d < dim_; ++d) w_.z[d] = w_.state[d * w_.width + values_];
    std::fill_n(w_.denominator, count, 0.0f);
    add_to_denominators(count, [&](std::int64_t i) {
      V sum(0.0f);
      for (std::int64_t d = 0; d < dim_; d += width) {
        const int n = lanes(dim_ - d);
        sum = fma(V::load(w_.q + i * dim_ + d, n), V::load(w_.z + d, n), sum);
      }
      return sum;
    });
  }

  /// Of each query the sum over the lanes of part(query).
  template <class F>
  void add_to_denominators(std::int64_t count, F&& part) const {
    for (std::int64_t i = 0; i < count; i += width) {
      V sum[width];
      for (int r = 0; r < width; ++r) sum[r] = part(std::min<std::int64_t>(i + r, count - 1));
      add_across<width / 2>(sum);
      (V::load(w_.denominator + i) + sum[0]).store(w_.denominator + i);
    }
  }

  /// O += A V with A = φ(Q) φ(K)ᵀ where key ≤ query, and the sums of its rows. Query i sees the first i + seen keys.
  void within_chunk(std::int64_t count, std::int64_t keys, std::int64_t seen) const {
    const auto seen_by = [&](std::int64_t i) { return std::clamp<std::int64_t>(i + seen, 0, keys); };
    transpose_in<Isa>(w_.k, dim_, keys, dim_, w_.k_lanes, W::chunk, 1.0f);
    for_row_blocks<Shape<Isa>::rows>(count, [&](auto rows, std::int64_t first) {
      const std::int64_t most = seen_by(first + rows - 1);
      for (std::int64_t i = first; i < first + rows; ++i)  // blocks of other heights read on
        for (std::int64_t j = round_up(most, width); j < keys; j += width) V(0.0f).store(w_.scores + i * W::chunk + j);
      if (most == 0) return;
      with_vectors<Isa>(most, [&](auto vectors) {
        Accumulators<Isa, rows, vectors> acc;
        acc.clear();
        multiply_rows(acc, w_.q + first * dim_, dim_, w_.k_lanes, W::chunk, dim_);
        acc.each([&](auto r, auto v, V& x) {
          const std::uint64_t bits = (std::uint64_t{1} << seen_by(first + r)) - 1;
          select(mask_from_bits<Isa>(bits >> (v * width)), x, V(0.0f))
              .store(w_.scores + (first + r) * W::chunk + v * width);
        });
      });
    });
    add_to_denominators(count, [&](std::int64_t i) {
      V sum(0.0f);
      for (std::int64_t j = 0; j < seen_by(i); j += width) sum += V::load(w_.scores + i * W::chunk + j);
      return sum;
    });
    // 0·NaN is NaN: a query must not take the product with a value that it does not see.
    if (seen < keys && !finite(keys))
      add_values<true>(count, seen_by);
    else
      add_values<false>(count, seen_by);
  }

  /// O += A V.
  template <bool OneByOne, class F>
  void add_values(std::int64_t count, const F& seen_by) const {
    for_column_blocks<Isa>(w_.columns, [&](auto vectors, std::int64_t e) {
      for_row_blocks<OneByOne ? 1 : block_rows<Isa, vectors>>(count, [&](auto rows, std::int64_t first) {
        Accumulators<Isa, rows, vectors> acc;
        float* o = w_.o + first * w_.columns + e;
        acc.each([&](auto r, auto v, V& x)
                     __attribute__((always_inline)) { x = V::load(o + r * w_.columns + v * width); });
        multiply_rows(acc, w_.scores + first * W::chunk, W::chunk, chunk_v_ + e, chunk_stride_,
                      seen_by(first + rows - 1));
        acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) { x.store(o + r * w_.columns + v * width); });
      });
    });
  }

  bool finite(std::int64_t keys) const {
    V zero(0.0f);
    for (std::int64_t j = 0; j < keys; ++j)
      for (std::int64_t e = 0; e < w_.columns; e += width)
        zero = fma(V::load(chunk_v_ + j * chunk_stride_ + e), V(0.0f), zero);
    return !any(zero != V(0.0f));
  }

  void finish(std::int64_t q0, std::int64_t count) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const float denominator = w_.denominator[i] + a_.eps;
      const V factor(denominator == 0.0f ? 0.0f : 1.0f / denominator);
      float* out = out_ + (q0 + i) * a_.out.strides[2];
      for (std::int64_t e = 0; e < values_; e += width)
        (V::load(w_.o + i * w_.columns + e) * factor).store(out + e, lanes(values_ - e));
    }
  }

  const kernel::LinearAttention& a_;
  const LinearAttentionWork<Isa>& w_;
  std::int64_t b_, h_, dim_, values_, keys_;
  bool exponents_;
  float highest_ = lowest;  // of the levels
  float* rows_ = nullptr;   // of S, where tokens come one by one
  std::int64_t row_stride_ = 0;
  const float *q_, *k_, *v_;
  const float* chunk_v_ = nullptr;  // the values of the keys in w_.k, whole vectors
  std::int64_t chunk_stride_ = 0;
  Ahead v_ahead_, out_ahead_;  // rows of the next chunk
  float* out_;
};

template <class Isa>
kernel::Work plan_linear_attention(const kernel::LinearAttention& a) {
  return {static_cast<std::size_t>(a.q.shape[0] * a.q.shape[1]), LinearAttentionWork<Isa>(a, nullptr).bytes};
}

template <class Isa>
void run_linear_attention(const kernel::LinearAttention& a, std::size_t first, std::size_t last, void* workspace) {
  const LinearAttentionWork<Isa> work(a, workspace);
  const auto heads = static_cast<std::size_t>(a.q.shape[1]);
  for (std::size_t item = first; item < last; ++item)
    LinearAttentionHead<Isa>(a, work, static_cast<std::int64_t>(item / heads), static_cast<std::int64_t>(item % heads))
        .run();
}

template <class Isa>
kernel::Work plan_linear_attention_recurrent(const kernel::LinearAttention& a) {
  return {static_cast<std::size_t>(a.q.shape[0] * a.q.shape[1]), LinearAttentionWork<Isa>(a, nullptr, true).bytes};
}

template <class Isa>
void run_linear_attention_recurrent(const kernel::LinearAttention& a, std::size_t first, std::size_t last,
                                    void* workspace) {
  const LinearAttentionWork<Isa> work(a, workspace, true);
  const auto heads = static_cast<std::size_t>(a.q.shape[1]);
  for (std::size_t item = first; item < last; ++item)
    LinearAttentionHead<Isa>(a, work, static_cast<std::int64_t>(item / heads), static_cast<std::int64_t>(item % heads))
        .run_recurrent();
}

template <class Isa>
std::int64_t query_chunks(const kernel::LinearAttention& a) {
  return ceil_div(a.q.shape[2], LinearAttentionWork<Isa>::chunk);
}

template <class Isa>
kernel::Work plan_linear_attention_quadratic(const kernel::LinearAttention& a) {
  return {static_cast<std::size_t>(a.q.shape[0] * a.q.shape[1] * query_chunks<Isa>(a)),
          LinearAttentionWork<Isa>(a, nullptr).bytes};
}

template <class Isa>
void run_linear_attention_quadratic(const kernel::LinearAttention& a, std::size_t first, std::size_t last,
                                    void* workspace) {
  const LinearAttentionWork<Isa> work(a, workspace);
  const std::int64_t heads = a.q.shape[1], chunks = query_chunks<Isa>(a);
  for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item)
    LinearAttentionHead<Isa>(a, work, item / chunks / heads, item / chunks % heads)
        .run_quadratic(item % chunks * LinearAttentionWork<Isa>::chunk);
}

}  // namespace treadle::simd

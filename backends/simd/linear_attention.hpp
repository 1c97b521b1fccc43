#pragma once
// Linear attention in chunks, or without a state. In chunks, the state is S = Σ φ(k) [v | 1], head_dim × (value_dim +
// 1): its last column is z, so that the denominator is one more row of the output. A chunk of tokens lies in the lanes,
// as in attention.hpp:
//
//   Oᵀ = Sᵀ φ(Q)ᵀ + [V | 1]ᵀ (mask ∘ φ(K) φ(Q)ᵀ)      then      S += φ(K)ᵀ [V | 1]
//
// Without a state, every query meets every key that it sees, a chunk of each at a time: q·k·(head_dim + value_dim)
// multiplications instead of (q + k)·head_dim·value_dim, and chunks of queries are independent work. For short
// sequences.
//
// Row i sees keys below min(i + k_len − q_len + 1, key length) if causal, below the key length otherwise.
//
// Exponentials are kept relative to the largest exponent of the keys absorbed so far, as in online softmax: where a
// chunk brings a larger one, S is scaled down. Keys that are never seen, NaN included, have no part in it.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/transpose.hpp>

#include <limits>

namespace treadle::simd {

template <class Isa>
struct LinearAttentionWork {
  static constexpr std::int64_t chunk = Shape<Isa>::lanes;
  std::int64_t width;  // of a row of S and of [v | 1], whole blocks of lanes
  float *state, *q, *o, *scores, *k,
      *v;  // [dim][width], [dim][chunk], [value_dim + 1][chunk], [chunk][chunk], [chunk][dim], [chunk][width]
  std::size_t bytes;

  LinearAttentionWork(const kernel::LinearAttention& a, void* base)
      : width(round_up(a.v.shape[3] + 1, Shape<Isa>::lanes)) {
    const std::int64_t dim = a.q.shape[3];
    Carver c(base);
    state = c.floats(dim * width);
    q = c.floats(dim * chunk);
    o = c.floats((a.v.shape[3] + 1) * chunk);
    scores = c.floats(chunk * chunk);
    k = c.floats(chunk * dim);
    v = c.floats(chunk * width);
    bytes = c.used();
  }
};

template <class Isa>
class LinearAttentionHead {
 public:
  LinearAttentionHead(const kernel::LinearAttention& a, const LinearAttentionWork<Isa>& w, std::int64_t b,
                      std::int64_t h)
      : a_(a), w_(w), b_(b), h_(h), dim_(a.q.shape[3]), values_(a.v.shape[3]) {
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
      for (; seen < end; seen += std::min(W::chunk, end - seen)) {
        load_keys(seen, std::min(W::chunk, end - seen));
        update(std::min(W::chunk, end - seen));
      }
    };
    if (!a_.causal) absorb_until(keys_);
    for (std::int64_t q0 = 0; q0 < q_len; q0 += W::chunk) {
      const std::int64_t count = std::min(W::chunk, q_len - q0);
      if (a_.causal) absorb_until(std::clamp<std::int64_t>(q0 + offset, 0, keys_));
      // Keys that some but not all queries of the chunk see; lane j sees those below q0 + j + offset + 1.
      const std::int64_t last = a_.causal ? std::clamp<std::int64_t>(q0 + count + offset, 0, keys_) : seen,
                         fresh = last - seen;
      if (fresh > 0) load_keys(seen, fresh);
      load_queries(q0, count);
      from_state();
      if (fresh > 0) {
        within_chunk(fresh, seen - (q0 + offset));
        update(fresh);
        seen = last;
      }
      finish(q0, count);
    }
    store_state();
  }

  /// The queries [q0, q0 + chunk) alone, without a state.
  void run_quadratic(std::int64_t q0) {
    const std::int64_t q_len = a_.q.shape[2], offset = a_.k.shape[2] - q_len, count = std::min(W::chunk, q_len - q0);
    const std::int64_t end = a_.causal ? std::clamp<std::int64_t>(q0 + count + offset, 0, keys_) : keys_;
    load_queries(q0, count);
    std::fill_n(w_.o, (values_ + 1) * ld, 0.0f);
    for (std::int64_t k0 = 0; k0 < end; k0 += W::chunk) {
      const std::int64_t keys = std::min(W::chunk, end - k0);
      load_keys(k0, keys);
      within_chunk(keys, a_.causal ? k0 - (q0 + offset) : -keys);
    }
    finish(q0, count);
  }

 private:
  using V = Vec<Isa>;
  using W = LinearAttentionWork<Isa>;
  static constexpr int width = V::width, vectors = Shape<Isa>::vectors;
  static constexpr std::int64_t ld = W::chunk;
  static constexpr float lowest = -std::numeric_limits<float>::max();  // finite: −inf − −inf is NaN

  V feature(V x) const {
    if (a_.feature == kernel::Feature::exponentials) return exp(x - V(largest_));
    return a_.feature == kernel::Feature::relu ? relu(x) : elu_plus_one(x);
  }

  float* state_of_caller() const {
    return a_.state.template as<float>() + b_ * a_.state.strides[0] + h_ * a_.state.strides[1];
  }
  void load_state() {
    std::fill_n(w_.state, dim_ * w_.width, 0.0f);
    if (!a_.state) return;
    for (std::int64_t d = 0; d < dim_; ++d)
      for (std::int64_t e = 0; e <= values_; ++e)
        w_.state[d * w_.width + e] = state_of_caller()[d * a_.state.strides[2] + e * a_.state.strides[3]];
  }
  void store_state() const {
    if (!a_.state) return;
    for (std::int64_t d = 0; d < dim_; ++d)
      for (std::int64_t e = 0; e <= values_; ++e)
        state_of_caller()[d * a_.state.strides[2] + e * a_.state.strides[3]] = w_.state[d * w_.width + e];
  }

  /// φ(K) as it lies, and [V | 1] with zeros up to whole lanes.
  void load_keys(std::int64_t first, std::int64_t count) {
    if (a_.feature == kernel::Feature::exponentials) raise_to(first, count);
    for (std::int64_t j = 0; j < count; ++j) {
      const float* k = k_ + (first + j) * a_.k.strides[2];
      const float* v = v_ + (first + j) * a_.v.strides[2];
      for (std::int64_t d = 0; d < dim_; d += width) {
        const int n = static_cast<int>(std::min<std::int64_t>(width, dim_ - d));
        feature(V::load(k + d, n)).store(w_.k + j * dim_ + d, n);
      }
      std::copy_n(v, values_, w_.v + j * w_.width);
      w_.v[j * w_.width + values_] = 1.0f;
      std::fill(w_.v + j * w_.width + values_ + 1, w_.v + (j + 1) * w_.width, 0.0f);
    }
  }

  void load_queries(std::int64_t q0, std::int64_t count) {
    transpose_in<Isa>(q_ + q0 * a_.q.strides[2], a_.q.strides[2], count, dim_, w_.q, ld, 1.0f);
    if (a_.feature == kernel::Feature::exponentials) {
      for (std::int64_t i = 0; i < ld; i += width) {  // relative to the largest of each lane
        V largest(-std::numeric_limits<float>::infinity());
        for (std::int64_t d = 0; d < dim_; ++d) largest = max(V::load(w_.q + d * ld + i), largest);
        for (std::int64_t d = 0; d < dim_; ++d) {
          float* q = w_.q + d * ld + i;
          exp(V::load(q) - largest).store(q);
        }
      }
      return;
    }
    for (std::int64_t i = 0; i < dim_ * ld; i += width) feature(V::load(w_.q + i)).store(w_.q + i);
  }

  /// Makes `largest_` that of these keys too, and S relative to it.
  void raise_to(std::int64_t first, std::int64_t count) {
    V largest(largest_);
    for (std::int64_t j = 0; j < count; ++j) {
      const float* k = k_ + (first + j) * a_.k.strides[2];
      for (std::int64_t d = 0; d < dim_; d += width) {
        const int n = static_cast<int>(std::min<std::int64_t>(width, dim_ - d));
        const V x = V::load(k + d, n);
        largest = max(n == width ? x : select(mask_from_bits<Isa>((std::uint64_t{1} << n) - 1), x, largest), largest);
      }
    }
    const float raised = reduce_max(largest);
    if (!(raised > largest_) || raised > -lowest) return;  // an infinite one reaches those who see it, not the scale
    if (largest_ > lowest) {
      const V factor = exp(V(largest_ - raised));
      for (std::int64_t i = 0; i < dim_ * w_.width; i += width) (V::load(w_.state + i) * factor).store(w_.state + i);
    }
    largest_ = raised;
  }

  /// S += φ(K)ᵀ [V | 1].
  void update(std::int64_t keys) {
    for (std::int64_t e = 0; e < w_.width; e += ld) {
      for_row_blocks<Shape<Isa>::rows>(dim_, [&](auto rows, std::int64_t first) {
        Accumulators<Isa, rows, vectors> acc;
        float* s = w_.state + first * w_.width + e;
        acc.each([&](auto r, auto v, V& x)
                     __attribute__((always_inline)) { x = V::load(s + r * w_.width + v * width); });
        multiply_columns(acc, w_.k + first, dim_, w_.v + e, w_.width, keys);
        acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) { x.store(s + r * w_.width + v * width); });
      });
    }
  }

  /// Oᵀ = Sᵀ φ(Q)ᵀ.
  void from_state() {
    for_row_blocks<Shape<Isa>::rows>(values_ + 1, [&](auto rows, std::int64_t first) {
      Accumulators<Isa, rows, vectors> acc;
      acc.clear();
      multiply_columns(acc, w_.state + first, w_.width, w_.q, ld, dim_);
      acc.each([&](auto r, auto v, V& x)
                   __attribute__((always_inline)) { x.store(w_.o + (first + r) * ld + v * width); });
    });
  }

  /// Oᵀ += [V | 1]ᵀ A with A = φ(K) φ(Q)ᵀ where key ≤ query. Key j is seen by lanes from j + shift on.
  void within_chunk(std::int64_t keys, std::int64_t shift) {
    const auto seen_by = [&](std::int64_t j) {
      const std::int64_t lane = j + shift;
      return lane <= 0 ? ~std::uint64_t{0} : lane >= 64 ? 0 : ~std::uint64_t{0} << lane;
    };
    for_row_blocks<Shape<Isa>::rows>(keys, [&](auto rows, std::int64_t first) {
      Accumulators<Isa, rows, vectors> acc;
      acc.clear();
      multiply_rows(acc, w_.k + first * dim_, dim_, w_.q, ld, dim_);
      acc.each([&](auto r, auto v, V& x) {
        select(mask_from_bits<Isa>(seen_by(first + r) >> (v * width)), x, V(0.0f))
            .store(w_.scores + (first + r) * ld + v * width);
      });
    });
    if (!finite(keys)) {  // 0·NaN is NaN: lanes that do not see a key must not take its product
      for (std::int64_t e = 0; e <= values_; ++e)
        for (std::int64_t j = 0; j < keys; ++j)
          for (int v = 0; v < vectors; ++v) {
            float* o = w_.o + e * ld + v * width;
            const V sum = fma(V(w_.v[j * w_.width + e]), V::load(w_.scores + j * ld + v * width), V::load(o));
            select(mask_from_bits<Isa>(seen_by(j) >> (v * width)), sum, V::load(o)).store(o);
          }
      return;
    }
    for_row_blocks<Shape<Isa>::rows>(values_ + 1, [&](auto rows, std::int64_t first) {
      Accumulators<Isa, rows, vectors> acc;
      float* o = w_.o + first * ld;
      acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) { x = V::load(o + r * ld + v * width); });
      multiply_columns(acc, w_.v + first, w_.width, w_.scores, ld, keys);
      acc.each([&](auto r, auto v, V& x) __attribute__((always_inline)) { x.store(o + r * ld + v * width); });
    });
  }

  bool finite(std::int64_t keys) const {
    V zero(0.0f);
    for (std::int64_t i = 0; i < keys * w_.width; i += width) zero = fma(V::load(w_.v + i), V(0.0f), zero);
    return !any(zero != V(0.0f));
  }

  void finish(std::int64_t q0, std::int64_t count) {
    V factor[vectors];
    for (int v = 0; v < vectors; ++v) {
      const V denominator = V::load(w_.o + values_ * ld + v * width) + V(a_.eps);
      factor[v] = select(denominator == V(0.0f), V(0.0f), V(1.0f) / denominator);
    }
    for (std::int64_t e = 0; e < values_; ++e)
      for (int v = 0; v < vectors; ++v) {
        float* o = w_.o + e * ld + v * width;
        (V::load(o) * factor[v]).store(o);
      }
    transpose_out<Isa>(w_.o, ld, count, values_, out_ + q0 * a_.out.strides[2], a_.out.strides[2]);
  }

  const kernel::LinearAttention& a_;
  const LinearAttentionWork<Isa>& w_;
  std::int64_t b_, h_, dim_, values_, keys_;
  float largest_ = lowest;  // exponent of the keys absorbed so far
  const float *q_, *k_, *v_;
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

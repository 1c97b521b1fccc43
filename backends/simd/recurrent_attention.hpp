#pragma once
// Attention with a decaying or corrected state (kernel.hpp, RecurrentAttention): in chunks of tokens, or token by
// token.
//
// In a chunk that starts at token 0, with G_i = Σ_(0 < s ≤ i) log_gate_s per channel, S the state after the gate of
// token 0, and rows
//
//   q̃_i = scale · q_i ∘ exp(G_i)      k̃_i = k_i ∘ exp(−G_i)      k̂_i = k_i ∘ exp(G_i)
//
// the outputs and the next state are
//
//   O = Q̃ S + (Q̃ K̃ᵀ where j ≤ i) U      S ← exp(G_last) ∘ (S + K̃ᵀ U)
//
// where U = V, or by the delta rule the solution of U = β ∘ (V − K̂ S − (K̂ K̃ᵀ where j < i) U), row after row (Yang et
// al. 2024, Parallelizing Linear Transformers with the Delta Rule, §3; Yang et al. 2025, §3.3). Tokens are rows, values
// lie in the lanes.
//
// exp(−G) must not overflow: a chunk ends where some |G| passes `strongest`, so that every product keeps its digits
// however strong the gates are; with gates of that strength a chunk is one token. exp(G_last) waits for the next
// chunk's first gate: one pass over S for both.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/transpose.hpp>

namespace treadle::simd {

template <class Isa>
struct RecurrentWork {
  static constexpr std::int64_t chunk = Shape<Isa>::lanes;
  std::int64_t width, channels;                  // of a row of values, and of a row of channels: whole vectors
  float *state, *u;                              // [dim][width], [chunk][width]
  float *gate, *factor;                          // [channels]: G, and its exponential
  float *q, *k, *key, *turned, *scores, *links;  // q̃, k̃, k̂ [chunk][dim], K̃ᵀ [dim][chunk], Q̃ K̃ᵀ and −β K̂ K̃ᵀ
  std::size_t bytes;

  RecurrentWork(const kernel::RecurrentAttention& a, void* base, bool one_token = false)
      : width(round_up(a.v.shape[3], Vec<Isa>::width)), channels(round_up(a.q.shape[3], Vec<Isa>::width)) {
    const std::int64_t dim = a.q.shape[3], tokens = one_token ? 1 : chunk, rows = one_token ? 0 : chunk;
    Carver c(base);
    state = c.floats(one_token && a.state ? 0 : dim * width);
    u = c.floats(tokens * width);
    gate = c.floats(channels);
    factor = c.floats(channels);
    q = c.floats(rows * dim);
    k = c.floats(rows * dim);
    key = c.floats(a.beta && a.log_gate ? rows * dim : 0);
    turned = c.floats(rows * dim);
    scores = c.floats(rows * chunk);
    links = c.floats(a.beta ? rows * chunk : 0);
    bytes = c.used();
  }
};

template <class Isa>
class RecurrentHead {
 public:
  RecurrentHead(const kernel::RecurrentAttention& a, const RecurrentWork<Isa>& w, std::int64_t b, std::int64_t h)
      : a_(a),
        w_(w),
        b_(b),
        h_(h),
        length_(a.q.shape[2]),
        dim_(a.q.shape[3]),
        values_(a.v.shape[3]),
        gated_(a.log_gate),
        one_gate_(gated_ && a.log_gate.strides[3] == 0),
        delta_(a.beta) {
    const std::int64_t kv = h / (a.q.shape[1] / a.k.shape[1]);
    q_ = a.q.template as<const float>() + b * a.q.strides[0] + h * a.q.strides[1];
    k_ = a.k.template as<const float>() + b * a.k.strides[0] + kv * a.k.strides[1];
    v_ = a.v.template as<const float>() + b * a.v.strides[0] + kv * a.v.strides[1];
    out_ = a.out.template as<float>() + b * a.out.strides[0] + h * a.out.strides[1];
  }

  void run() {
    s_ = w_.state;
    stride_ = w_.width;
    if (values_ < w_.width)
      for (std::int64_t d = 0; d < dim_; ++d) std::fill_n(s_ + d * stride_, w_.width, 0.0f);
    load_state();
    std::fill_n(w_.gate, w_.channels, 0.0f);
    for (std::int64_t t = 0; t < length_;) {
      if (gated_) scale_state(t, true);
      const std::int64_t count = prepare(t);
      if (count > 1 && chunk(t, count)) {
        t += count;
        continue;
      }
      std::fill_n(w_.gate, w_.channels, 0.0f);  // nothing waits
      step(t);
      for (std::int64_t i = 1; i < count; ++i) {
        if (gated_) scale_state(t + i, false);
        step(t + i);
      }
      t += count;
    }
    if (!a_.state) return;
    if (gated_) apply_factor([&](std::int64_t d, int n) { return exp(V::load(w_.gate + d, n)); });
    for (std::int64_t d = 0; d < dim_; ++d)
      std::copy_n(s_ + d * stride_, values_, state_of(a_.state) + d * a_.state.strides[2]);
  }

  /// In the caller's state if there is one.
  void run_recurrent() {
    s_ = a_.state ? state_of(a_.state) : w_.state;
    stride_ = a_.state ? a_.state.strides[2] : w_.width;
    load_state();
    for (std::int64_t t = 0; t < length_; ++t) {
      if (gated_) scale_state(t, false);
      step(t);
    }
  }

 private:
  using V = Vec<Isa>;
  using W = RecurrentWork<Isa>;
  static constexpr int width = V::width;
  static constexpr float strongest = 40.0f;  // exp(40) ≈ 10¹⁷: products of two stay far inside float's range

  int lanes(std::int64_t left) const { return static_cast<int>(std::min<std::int64_t>(width, left)); }
  float* state_of(const TensorView& t) const { return t.template as<float>() + b_ * t.strides[0] + h_ * t.strides[1]; }

  void load_state() {
    for (std::int64_t d = 0; d < dim_; ++d) {
      float* to = s_ + d * stride_;
      const float* from = a_.initial ? state_of(a_.initial) + d * a_.initial.strides[2] : nullptr;
      if (from == nullptr)
        std::fill_n(to, values_, 0.0f);
      else if (from != to)
        std::copy_n(from, values_, to);
    }
  }

  const float* gate_of(std::int64_t t) const {
    const auto& s = a_.log_gate.strides;
    return a_.log_gate.template as<const float>() + b_ * s[0] + h_ * s[1] + t * s[2];
  }
  /// The log gates of channels d to d + n.
  V gate_at(const float* g, std::int64_t d, int n) const { return one_gate_ ? V(g[0]) : V::load(g + d, n); }
  float beta_at(std::int64_t t) const {
    const auto& s = a_.beta.strides;
    return a_.beta.template as<const float>()[b_ * s[0] + h_ * s[1] + t * s[2]];
  }

  /// S ← diag(f) S; a factor of 0 clears its row, NaN included.
  template <class F>
  void apply_factor(F f) {
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      f(d, n).store(w_.factor + d, n);
    }
    for (std::int64_t d = 0; d < dim_; ++d) {
      const float x = w_.factor[d];
      if (x == 1.0f) continue;
      float* row = s_ + d * stride_;
      if (x == 0.0f) {
        std::fill_n(row, values_, 0.0f);
        continue;
      }
      std::int64_t e = 0;
      for (; e + width <= values_; e += width) (V::load(row + e) * V(x)).store(row + e);
      if (e < values_) (V::load(row + e, lanes(values_ - e)) * V(x)).store(row + e, lanes(values_ - e));
    }
  }
  /// The gate of token t, with what waits from the chunk before.
  void scale_state(std::int64_t t, bool waiting) {
    const float* g = gate_of(t);
    apply_factor([&](std::int64_t d, int n) {
      const V gate = gate_at(g, d, n);
      return exp(waiting ? gate + V::load(w_.gate + d, n) : gate);
    });
  }

  /// S ← S + k_t uᵀ and the output of token t, after its gate.
  void step(std::int64_t t) {
    const float* q = q_ + t * a_.q.strides[2];
    const float* k = k_ + t * a_.k.strides[2];
    const float* v = v_ + t * a_.v.strides[2];
    float* out = out_ + t * a_.out.strides[2];
    const V beta(delta_ ? beta_at(t) : 0.0f), scale(a_.scale);
    for (std::int64_t e = 0; e < values_; e += 3 * width)
      with_vectors<Isa>(values_ - e, [&](auto vectors) {
        constexpr int count = vectors;
        V u[count], sum[count];
        int n[count];
        for (int i = 0; i < count; ++i) {
          n[i] = lanes(values_ - e - i * width);
          u[i] = V::load(v + e + i * width, n[i]);
          sum[i] = V(0.0f);
        }
        const auto row = [&](std::int64_t d, int i) { return s_ + d * stride_ + e + i * width; };
        const auto get = [&](const float* p, int m) { return m == width ? V::load(p) : V::load(p, m); };
        if (delta_) {
          for (std::int64_t d = 0; d < dim_; ++d) {
            const V x(k[d]);
            for (int i = 0; i < count; ++i) sum[i] = fma(x, get(row(d, i), n[i]), sum[i]);
          }
          for (int i = 0; i < count; ++i) {
            u[i] = beta * (u[i] - sum[i]);
            sum[i] = V(0.0f);
          }
        }
        for (std::int64_t d = 0; d < dim_; ++d) {
          const V x(k[d]), y(q[d]);
          for (int i = 0; i < count; ++i) {
            float* p = row(d, i);
            const V s = fma(x, u[i], get(p, n[i]));
            if (n[i] == width)
              s.store(p);
            else
              s.store(p, n[i]);
            sum[i] = fma(y, s, sum[i]);
          }
        }
        for (int i = 0; i < count; ++i) (scale * sum[i]).store(out + e + i * width, n[i]);
      });
  }

  /// G of the tokens from t on, and q̃, k̃, k̂; how many tokens the chunk has.
  std::int64_t prepare(std::int64_t t) {
    const std::int64_t most = std::min(W::chunk, length_ - t);
    std::fill_n(w_.gate, gated_ ? w_.channels : 0, 0.0f);
    for (std::int64_t i = 0; i < most; ++i) {
      if (i > 0 && gated_ && !add_gate(gate_of(t + i))) return i;
      load_token(t + i, i);
    }
    return most;
  }
  /// G + g, unless that is too strong.
  bool add_gate(const float* g) {
    V largest(0.0f);
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      const V sum = V::load(w_.gate + d) + gate_at(g, d, n);
      sum.store(w_.factor + d);
      largest =
          max(abs(n == width ? sum : select(mask_from_bits<Isa>((std::uint64_t{1} << n) - 1), sum, V(0.0f))), largest);
    }
    if (reduce_max(largest) > strongest) return false;
    std::swap_ranges(w_.gate, w_.gate + w_.channels, w_.factor);
    return true;
  }
  void load_token(std::int64_t t, std::int64_t i) {
    const float* q = q_ + t * a_.q.strides[2];
    const float* k = k_ + t * a_.k.strides[2];
    const V scale(a_.scale);
    V up(1.0f), down(1.0f);
    if (one_gate_ && i > 0) {
      up = exp(V(w_.gate[0]));
      down = exp(V(-w_.gate[0]));
    }
    for (std::int64_t d = 0; d < dim_; d += width) {
      const int n = lanes(dim_ - d);
      if (gated_ && !one_gate_ && i > 0) {
        const V g = V::load(w_.gate + d);
        up = exp(g);
        down = exp(-g);
      }
      const V key = V::load(k + d, n);
      (scale * V::load(q + d, n) * up).store(w_.q + i * dim_ + d, n);
      (key * down).store(w_.k + i * dim_ + d, n);
      if (gated_ && delta_) (key * up).store(w_.key + i * dim_ + d, n);
    }
  }

  /// The tokens [t, t + count) together; false, with nothing done, if a key or a value is not finite: 0 · NaN would
  /// carry it to tokens before.
  bool chunk(std::int64_t t, std::int64_t count) {
    transpose_in<Isa>(w_.k, dim_, count, dim_, w_.turned, W::chunk, 1.0f);
    const float* keys = gated_ ? w_.key : w_.k;
    for (std::int64_t i = 0; i < count; ++i) {
      const float* v = v_ + (t + i) * a_.v.strides[2];
      std::copy_n(v, values_, w_.u + i * w_.width);
      std::fill(w_.u + i * w_.width + values_, w_.u + (i + 1) * w_.width, 0.0f);
    }
    if (delta_) {
      products(
          keys, count, w_.links, [&](std::int64_t i) { return i; }, [&](std::int64_t i) { return -beta_at(t + i); });
      solve(keys, t, count);
    }
    if (!finite(w_.k, count * dim_) || !finite(w_.u, count * w_.width)) return false;
    products(w_.q, count, w_.scores, [](std::int64_t i) { return i + 1; }, [](std::int64_t) { return 1.0f; });
    answer(t, count);
    update(count);
    return true;
  }

  /// to[i][j] = factor(i) · a_i · k̃_j for j < end(i), 0 for the others.
  template <class End, class Factor>
  void products(const float* a, std::int64_t count, float* to, End end, Factor factor) {
    constexpr int vectors = Shape<Isa>::vectors;
    for_row_blocks<Shape<Isa>::rows>(count, [&](auto rows, std::int64_t first) {
      Accumulators<Isa, rows, vectors> acc;
      acc.clear();
      multiply_rows(acc, a + first * dim_, dim_, w_.turned, W::chunk, dim_);
      acc.each([&](auto r, auto v, V& x) {
        const std::uint64_t seen = (std::uint64_t{1} << end(first + r)) - 1;
        select(mask_from_bits<Isa>(seen >> (v * width)), V(factor(first + r)) * x, V(0.0f))
            .store(to + (first + r) * W::chunk + v * width);
      });
    });
  }

  /// U in the place of V: u_i = β_i (v_i − Sᵀ k̂_i) + Σ_(j < i) links_ij u_j.
  void solve(const float* keys, std::int64_t t, std::int64_t count) {
    for (std::int64_t e = 0; e < values_; e += 3 * width)
      with_vectors<Isa>(values_ - e, [&](auto vectors) {
        for_row_blocks<Shape<Isa>::rows>(count, [&](auto rows, std::int64_t first) {
          Accumulators<Isa, rows, vectors> acc;
          acc.clear();
          multiply_rows(acc, keys + first * dim_, dim_, s_ + e, stride_, dim_);
          acc.each([&](auto r, auto v, V& x) {
            float* u = w_.u + (first + r) * w_.width + e + v * width;
            (V(beta_at(t + first + r)) * (V::load(u) - x)).store(u);
          });
        });
        for (std::int64_t i = 1; i < count; ++i) {
          Accumulators<Isa, 1, vectors> acc;
          float* u = w_.u + i * w_.width + e;
          acc.each([&](auto, auto v, V& x) { x = V::load(u + v * width); });
          multiply_rows(acc, w_.links + i * W::chunk, W::chunk, w_.u + e, w_.width, i);
          acc.each([&](auto, auto v, V& x) { x.store(u + v * width); });
        }
      });
  }

  /// O = Q̃ S + scores U.
  void answer(std::int64_t t, std::int64_t count) {
    for (std::int64_t e = 0; e < values_; e += 3 * width)
      with_vectors<Isa>(values_ - e, [&](auto vectors) {
        for_row_blocks<Shape<Isa>::rows>(count, [&](auto rows, std::int64_t first) {
          Accumulators<Isa, rows, vectors> acc;
          acc.clear();
          multiply_rows(acc, w_.q + first * dim_, dim_, s_ + e, stride_, dim_);
          multiply_rows(acc, w_.scores + first * W::chunk, W::chunk, w_.u + e, w_.width, first + rows);
          acc.each([&](auto r, auto v, V& x) {
            float* out = out_ + (t + first + r) * a_.out.strides[2] + e + v * width;
            const int n = lanes(values_ - e - v * width);
            if (n == width)
              x.store(out);
            else
              x.store(out, n);
          });
        });
      });
  }

  /// S += K̃ᵀ U.
  void update(std::int64_t count) {
    for (std::int64_t e = 0; e < values_; e += 3 * width)
      with_vectors<Isa>(values_ - e, [&](auto vectors) {
        for_row_blocks<Shape<Isa>::rows>(dim_, [&](auto rows, std::int64_t first) {
          Accumulators<Isa, rows, vectors> acc;
          float* s = s_ + first * stride_ + e;
          acc.each([&](auto r, auto v, V& x) { x = V::load(s + r * stride_ + v * width); });
          multiply_columns(acc, w_.k + first, dim_, w_.u + e, w_.width, count);
          acc.each([&](auto r, auto v, V& x) { x.store(s + r * stride_ + v * width); });
        });
      });
  }

  static bool finite(const float* x, std::int64_t n) {
    V zero(0.0f);
    std::int64_t i = 0;
    for (; i + width <= n; i += width) zero = fma(V::load(x + i), V(0.0f), zero);
    if (i < n) zero = fma(V::load(x + i, static_cast<int>(n - i)), V(0.0f), zero);
    return !any(zero != V(0.0f));
  }

  const kernel::RecurrentAttention& a_;
  const RecurrentWork<Isa>& w_;
  std::int64_t b_, h_, length_, dim_, values_;
  bool gated_, one_gate_, delta_;
  const float *q_, *k_, *v_;
  float* out_;
  float* s_ = nullptr;
  std::int64_t stride_ = 0;
};

template <class Isa>
kernel::Work plan_recurrent_attention(const kernel::RecurrentAttention& a) {
  return {static_cast<std::size_t>(a.q.shape[0] * a.q.shape[1]), RecurrentWork<Isa>(a, nullptr).bytes};
}

template <class Isa>
void run_recurrent_attention(const kernel::RecurrentAttention& a, std::size_t first, std::size_t last,
                             void* workspace) {
  const RecurrentWork<Isa> work(a, workspace);
  const auto heads = static_cast<std::size_t>(a.q.shape[1]);
  for (std::size_t item = first; item < last; ++item)
    RecurrentHead<Isa>(a, work, static_cast<std::int64_t>(item / heads), static_cast<std::int64_t>(item % heads)).run();
}

template <class Isa>
kernel::Work plan_recurrent_attention_recurrent(const kernel::RecurrentAttention& a) {
  return {static_cast<std::size_t>(a.q.shape[0] * a.q.shape[1]), RecurrentWork<Isa>(a, nullptr, true).bytes};
}

template <class Isa>
void run_recurrent_attention_recurrent(const kernel::RecurrentAttention& a, std::size_t first, std::size_t last,
                                       void* workspace) {
  const RecurrentWork<Isa> work(a, workspace, true);
  const auto heads = static_cast<std::size_t>(a.q.shape[1]);
  for (std::size_t item = first; item < last; ++item)
    RecurrentHead<Isa>(a, work, static_cast<std::int64_t>(item / heads), static_cast<std::int64_t>(item % heads))
        .run_recurrent();
}

}  // namespace treadle::simd

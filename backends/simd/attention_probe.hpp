#pragma once
// Probes of attention: the same strips and tiles of scores as attention.hpp, but each weight is exp(score − lse) at
// once, since the log-sum-exp is known, and what is kept of it is a summary.

#include <treadle/backends/simd/attention.hpp>

namespace treadle::simd {

template <class Isa>
struct ProbeWork {
  AttentionWork<Isa> scores;
  double* received;                      // of every key
  float *shift, *total, *least, *found;  // log2 of each lane's denominator, its entropy, its k-th score, its k scores
  std::int64_t* indices;                 // [k][strip], as `found`
  std::size_t bytes;

  ProbeWork(const kernel::AttentionProbe& a, void* base) : scores(a.scores, base) {
    const std::int64_t strip = scores.strip;
    Carver c(base == nullptr ? nullptr : static_cast<char*>(base) + scores.bytes);
    const std::int64_t k = a.indices ? a.indices.shape[3] : 0;
    received =
        static_cast<double*>(c.bytes(a.received ? static_cast<std::size_t>(a.scores.k.shape[2]) * sizeof(double) : 0));
    shift = c.floats(strip);
    total = c.floats(strip);
    least = c.floats(strip);
    found = c.floats(k * strip);
    indices = static_cast<std::int64_t*>(c.bytes(static_cast<std::size_t>(k * strip) * sizeof(std::int64_t)));
    bytes = scores.bytes + c.used();
  }
};

template <class Isa, int Vectors>
class ProbeStrip : AttentionStrip<Isa, Vectors> {
  using Base = AttentionStrip<Isa, Vectors>;
  using Base::width, Base::ld, Base::log2e, Base::infinity, Base::a_, Base::w_, Base::b_, Base::h_, Base::q0_,
      Base::count_;
  using typename Base::V;

 public:
  ProbeStrip(const kernel::AttentionProbe& p, const ProbeWork<Isa>& w, std::int64_t b, std::int64_t h, std::int64_t q0,
             std::int64_t count)
      : Base(p.scores, w.scores, b, h, q0, count), p_(p), work_(w) {}

  void run() {
    begin();
    this->each_tile([&](std::int64_t k0, std::int64_t k1, const std::uint64_t* bits) {
      const std::int64_t keys = k1 - k0;
      V top[Vectors];  // the maximum, which nobody asks for
      unroll<Vectors>([&](auto v) { top[v] = V(-infinity); });
      this->scores(k0, keys, bits, top);
      if (p_.indices) choose(k0, keys);
      if (p_.entropy) add_entropy(keys);
      if (p_.received || p_.weights) weigh(keys);
      if (p_.received) receive(k0, keys);
      if (p_.weights) write_weights(k0, keys);
    });
    finish();
  }

 private:
  float* row(const TensorView& t) const {
    return t.as<float>() + b_ * t.strides[0] + h_ * t.strides[1] + q0_ * t.strides[2];
  }

  void begin() {
    Base::begin();
    const float* lse =
        a_.lse.template as<const float>() + b_ * a_.lse.strides[0] + h_ * a_.lse.strides[1] + q0_ * a_.lse.strides[2];
    for (std::int64_t lane = 0; lane < ld; ++lane) {
      // 2^(score − ∞) = 0: the weight in rows that see nothing, and in lanes beyond the strip.
      work_.shift[lane] = infinity;
      work_.total[lane] = 0;
      work_.least[lane] = lane < count_ ? -infinity : infinity;
      if (lane >= count_) continue;
      auto denominator = static_cast<double>(lse[lane * a_.lse.strides[2]]);
      if (denominator == -std::numeric_limits<double>::infinity()) continue;
      if (a_.sink) {
        const auto sink = static_cast<double>(a_.sink.template as<const float>()[h_ * a_.sink.strides[0]]);
        const double larger = std::max(denominator, sink);
        denominator = larger + std::log(std::exp(denominator - larger) + std::exp(sink - larger));
      }
      work_.shift[lane] = static_cast<float>(denominator * 1.4426950408889634);
    }
    if (p_.indices) {
      const std::int64_t size = p_.indices.shape[3] * ld;
      std::fill_n(work_.found, size, -infinity);
      std::fill_n(work_.indices, size, std::int64_t{-1});
    }
    if (p_.weights)
      for (std::int64_t q = 0; q < count_; ++q)
        std::fill_n(row(p_.weights) + q * p_.weights.strides[2], p_.weights.shape[3], 0.0f);
  }

  /// Scores become weights.
  void weigh(std::int64_t keys) {
    for (std::int64_t j = 0; j < keys; ++j) {
      unroll<Vectors>([&](auto v) __attribute__((always_inline)) {
        float* at = w_.s + j * ld + v * width;
        exp2_flushed(V::load(at) - V::load(work_.shift + v * width)).store(at);
      });
    }
  }

  /// Σ p (lse − s) in units of ln 2. A tile at a time, so that long rows lose no digits.
  void add_entropy(std::int64_t keys) {
    unroll<Vectors>([&](auto v) {
      const V shift = V::load(work_.shift + v * width);
      V sum(0.0f);
      for (std::int64_t j = 0; j < keys; ++j) {
        const V distance = V::load(w_.s + j * ld + v * width) - shift, p = exp2_flushed(distance);
        sum = select(p != V(0.0f), fma(p, -distance, sum), sum);  // 0 · ∞ is no entropy
      }
      (V::load(work_.total + v * width) + sum).store(work_.total + v * width);
    });
  }

  void receive(std::int64_t k0, std::int64_t keys) {
    for (std::int64_t j = 0; j < keys; ++j) {
      V sum = V::load(w_.s + j * ld);
      for (int v = 1; v < Vectors; ++v) sum += V::load(w_.s + j * ld + v * width);
      work_.received[k0 + j] += static_cast<double>(reduce_add(sum));
    }
  }

  void write_weights(std::int64_t k0, std::int64_t keys) {
    transpose_out<Isa>(w_.s, ld, count_, keys, row(p_.weights) + k0, p_.weights.strides[2]);
  }

  /// The k largest scores of each lane so far, in order; of equal ones the earlier key stands first.
  void choose(std::int64_t k0, std::int64_t keys) {
    const std::int64_t k = p_.indices.shape[3];
    for (std::int64_t j = 0; j < keys; ++j) {
      const float* scores = w_.s + j * ld;
      for (int v = 0; v < Vectors; ++v)
        if (any(V::load(work_.least + v * width) < V::load(scores + v * width)))
          for (int lane = v * width; lane < (v + 1) * width; ++lane)
            if (scores[lane] > work_.least[lane]) insert(lane, scores[lane], k0 + j, k);
    }
  }
  void insert(std::int64_t lane, float score, std::int64_t key, std::int64_t k) {
    std::int64_t at = k - 1;
    for (; at > 0 && score > work_.found[(at - 1) * ld + lane]; --at) {
      work_.found[at * ld + lane] = work_.found[(at - 1) * ld + lane];
      work_.indices[at * ld + lane] = work_.indices[(at - 1) * ld + lane];
    }
    work_.found[at * ld + lane] = score;
    work_.indices[at * ld + lane] = key;
    work_.least[lane] = work_.found[(k - 1) * ld + lane];
  }

  void finish() {
    if (p_.entropy)
      for (std::int64_t q = 0; q < count_; ++q)
        row(p_.entropy)[q * p_.entropy.strides[2]] = work_.total[q] * 0.69314718f;
    if (!p_.indices) return;
    const std::int64_t k = p_.indices.shape[3];
    for (std::int64_t n = 0; n < k; ++n) {
      unroll<Vectors>([&](auto v) {
        float* at = work_.found + n * ld + v * width;
        exp2_flushed(V::load(at) - V::load(work_.shift + v * width)).store(at);
      });
    }
    transpose_out<Isa>(work_.found, ld, count_, k, row(p_.largest), p_.largest.strides[2]);
    auto* out = p_.indices.template as<std::int64_t>() + b_ * p_.indices.strides[0] + h_ * p_.indices.strides[1] +
                q0_ * p_.indices.strides[2];
    for (std::int64_t q = 0; q < count_; ++q)
      for (std::int64_t n = 0; n < k; ++n) out[q * p_.indices.strides[2] + n] = work_.indices[n * ld + q];
  }

  const kernel::AttentionProbe& p_;
  const ProbeWork<Isa>& work_;
};

template <class Isa>
kernel::Work plan_attention_probe(const kernel::AttentionProbe& a) {
  const auto& s = a.scores.q.shape;
  const ProbeWork<Isa> work(a, nullptr);
  const std::int64_t strip = work.scores.strip, strips = a.received ? 1 : ceil_div(s[2], strip);
  return {static_cast<std::size_t>(s[0] * s[1] * strips), work.bytes, std::min(strip, s[2]), work.scores.block};
}

template <class Isa>
void run_attention_probe(const kernel::AttentionProbe& a, std::size_t first, std::size_t last, void* workspace) {
  const ProbeWork<Isa> work(a, workspace);
  const std::int64_t strip = work.scores.strip, length = a.scores.q.shape[2], keys = a.scores.k.shape[2],
                     heads = a.scores.q.shape[1];
  const auto run_strip = [&](std::int64_t head, std::int64_t q0) {
    const std::int64_t count = std::min(strip, length - q0);
    with_vectors<Isa, most_vectors<Isa>>(
        count, [&](auto vectors) { ProbeStrip<Isa, vectors>(a, work, head / heads, head % heads, q0, count).run(); });
  };
  const std::int64_t strips = ceil_div(length, strip);
  for (auto item = static_cast<std::int64_t>(first); item < static_cast<std::int64_t>(last); ++item) {
    if (!a.received) {
      run_strip(item / strips, (strips - 1 - item % strips) * strip);
      continue;
    }
    std::fill_n(work.received, keys, 0.0);
    for (std::int64_t q0 = 0; q0 < length; q0 += strip) run_strip(item, q0);
    float* out = a.received.as<float>() + item / heads * a.received.strides[0] + item % heads * a.received.strides[1];
    for (std::int64_t j = 0; j < keys; ++j) out[j * a.received.strides[2]] = static_cast<float>(work.received[j]);
  }
}

}  // namespace treadle::simd

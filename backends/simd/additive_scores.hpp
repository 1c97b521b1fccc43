#pragma once
// Additive scores: keys lie in the lanes, a strip of queries passes over them, features are summed in order. What is
// held is one block of keys, features × lanes.

#include <treadle/backends/kernel.hpp>
#include <treadle/backends/simd/block.hpp>
#include <treadle/backends/simd/math.hpp>
#include <treadle/backends/simd/transpose.hpp>

namespace treadle::simd {

template <class Isa>
struct AdditiveTiling {
  static constexpr std::int64_t queries = 32, keys = Shape<Isa>::lanes;
  std::int64_t strips;
  explicit AdditiveTiling(const kernel::AdditiveScores& a) : strips(ceil_div(a.q.shape[2], queries)) {}
};

template <class Isa>
kernel::Work plan_additive_scores(const kernel::AdditiveScores& a) {
  const AdditiveTiling<Isa> t(a);
  return {static_cast<std::size_t>(a.q.shape[0] * a.q.shape[1] * t.strips),
          static_cast<std::size_t>(a.q.shape[3] * t.keys) * sizeof(float)};
}

template <class Isa>
void run_additive_scores(const kernel::AdditiveScores& a, std::size_t begin, std::size_t end, void* workspace) {
  using V = Vec<Isa>;
  const AdditiveTiling<Isa> t(a);
  const std::int64_t width = a.q.shape[3], m = a.k.shape[2];
  const float* weight = a.v.as<const float>();
  auto* keys = static_cast<float*>(workspace);
  for (auto item = static_cast<std::int64_t>(begin); item < static_cast<std::int64_t>(end); ++item) {
    const std::int64_t q0 = item % t.strips * t.queries, h = item / t.strips % a.q.shape[1],
                       b = item / t.strips / a.q.shape[1], q1 = std::min(q0 + t.queries, a.q.shape[2]);
    const auto at = [&](const TensorView& x) { return x.as<float>() + b * x.strides[0] + h * x.strides[1]; };
    for (std::int64_t k0 = 0; k0 < m; k0 += t.keys) {
      const std::int64_t count = std::min(t.keys, m - k0);
      transpose_in<Isa>(at(a.k) + k0 * a.k.strides[2], a.k.strides[2], count, width, keys, t.keys, 1.0f);
      for (std::int64_t q = q0; q < q1; ++q) {
        const float* query = at(a.q) + q * a.q.strides[2];
        float* out = at(a.out) + q * a.out.strides[2] + k0;
        with_vectors<Isa>(count, [&](auto vectors) {
          V sum[vectors];
          for (int v = 0; v < vectors; ++v) sum[v] = V(0.0f);
          for (std::int64_t c = 0; c < width; ++c)
            for (int v = 0; v < vectors; ++v)
              sum[v] = fma(V(weight[c]), tanh(V(query[c]) + V::load(keys + c * t.keys + v * V::width)), sum[v]);
          for (int v = 0; v < vectors; ++v) {
            const std::int64_t left = std::min<std::int64_t>(V::width, count - v * V::width);
            if (left == V::width)
              sum[v].store(out + v * V::width);
            else
              sum[v].store(out + v * V::width, static_cast<int>(left));
          }
        });
      }
    }
  }
}

}  // namespace treadle::simd

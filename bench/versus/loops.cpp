// Plain loops that Treadle is measured against, compiled -O3 -march=native -ffast-math (CMakeLists.txt).

#include <cmath>
#include <cstddef>
#include <cstdint>

extern "C" {

/// Causal linear attention token by token, as Katharopoulos et al. 2020, algorithm 1, and the CPU kernel of
/// fast-transformers do it: S += φ(k) vᵀ, z += φ(k), out = φ(q) S / φ(q)·z with φ = elu + 1. q, k, v, out [heads,
/// length, 64]; the head size is a constant, which is to the loop's advantage. Heads are spread over the threads.
void versus_token_loop(const float* q_in, const float* k_in, const float* v_in, float* out, std::int64_t heads,
                       std::int64_t length, int threads) {
  constexpr std::int64_t dim = 64;
  static_cast<void>(threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::int64_t h = 0; h < heads; ++h) {
    alignas(64) float state[dim][dim] = {}, sum[dim] = {}, phi_q[dim], phi_k[dim], row[dim];
    const std::int64_t start = h * length * dim;
    for (std::int64_t n = 0; n < length; ++n) {
      const float *q = q_in + start + n * dim, *k = k_in + start + n * dim, *v = v_in + start + n * dim;
      float* to = out + start + n * dim;
      float denominator = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        phi_q[d] = q[d] > 0 ? q[d] + 1 : std::exp(q[d]);
        phi_k[d] = k[d] > 0 ? k[d] + 1 : std::exp(k[d]);
      }
      for (std::int64_t d = 0; d < dim; ++d) {
        sum[d] += phi_k[d];
        denominator += phi_q[d] * sum[d];
      }
      for (std::int64_t e = 0; e < dim; ++e) row[e] = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        const float kd = phi_k[d], qd = phi_q[d];
        for (std::int64_t e = 0; e < dim; ++e) {
          const float s = state[d][e] + kd * v[e];
          state[d][e] = s;
          row[e] += qd * s;
        }
      }
      for (std::int64_t e = 0; e < dim; ++e) to[e] = row[e] / denominator;
    }
  }
}

/// Reads every word of a buffer once and returns their sum, so that nothing can be left out.
float versus_read(const float* data, std::int64_t count, int threads) {
  constexpr std::int64_t lanes = 128;  // as many sums as hide the additions behind the loads
  float total = 0;
  static_cast<void>(threads);
  const std::int64_t rows = count / lanes;
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(+ : total)
  {
    float sums[lanes] = {};
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* p = data + i * lanes;
      __builtin_prefetch(p + 4096);
      __builtin_prefetch(p + 4096 + 16);
      __builtin_prefetch(p + 4096 + 32);
      __builtin_prefetch(p + 4096 + 48);
      __builtin_prefetch(p + 4096 + 64);
      __builtin_prefetch(p + 4096 + 80);
      __builtin_prefetch(p + 4096 + 96);
      __builtin_prefetch(p + 4096 + 112);
      for (std::int64_t j = 0; j < lanes; ++j) sums[j] += p[j];
    }
    for (const float s : sums) total += s;
  }
  return total;
}

}  // extern "C"

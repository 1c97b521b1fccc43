// Plain loops that Treadle is measured against, compiled -O3 -march=native -ffast-math (CMakeLists.txt).

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <vector>

namespace {

float feature(float x) { return x > 0 ? x + 1 : std::exp(x); }

/// S += k vᵀ for S [keys, values].
void add_outer(const float* k, const float* v, float* state, std::int64_t keys, std::int64_t values) {
  for (std::int64_t d = 0; d < keys; ++d)
    for (std::int64_t e = 0; e < values; ++e) state[d * values + e] += k[d] * v[e];
}

/// out = q S.
void multiply_row(const float* q, const float* state, float* out, std::int64_t keys, std::int64_t values) {
  for (std::int64_t e = 0; e < values; ++e) out[e] = 0;
  for (std::int64_t d = 0; d < keys; ++d)
    for (std::int64_t e = 0; e < values; ++e) out[e] += q[d] * state[d * values + e];
}

}  // namespace

extern "C" {

/// Causal linear attention token by token (Katharopoulos et al. 2020, algorithm 1) as the CPU kernel of
/// fast-transformers does it: sizes known at run time, one pass over the state to add φ(k) vᵀ, another to multiply it
/// by φ(q). Features (elu + 1) and denominator are inside, which that library leaves to PyTorch. q, k, v, out [heads,
/// length, dim]; heads are spread over the threads.
void versus_token_loop(const float* q_in, const float* k_in, const float* v_in, float* out, std::int64_t heads,
                       std::int64_t length, std::int64_t dim, int threads) {
  static_cast<void>(threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto size = static_cast<std::size_t>(dim);
    std::vector<float> state(size * size), sum(size), phi_q(size), phi_k(size);
    for (std::int64_t n = 0; n < length; ++n) {
      const std::int64_t at = (h * length + n) * dim;
      float denominator = 0;
      for (std::size_t d = 0; d < size; ++d) {
        phi_q[d] = feature(q_in[at + static_cast<std::int64_t>(d)]);
        phi_k[d] = feature(k_in[at + static_cast<std::int64_t>(d)]);
        sum[d] += phi_k[d];
        denominator += phi_q[d] * sum[d];
      }
      add_outer(phi_k.data(), v_in + at, state.data(), dim, dim);
      multiply_row(phi_q.data(), state.data(), out + at, dim, dim);
      for (std::int64_t e = 0; e < dim; ++e) out[at + e] /= denominator;
    }
  }
}

/// The same with both passes in one and a head size of 64 that the compiler knows: what a careful programmer makes of
/// that loop.
void versus_fused_token_loop(const float* q_in, const float* k_in, const float* v_in, float* out, std::int64_t heads,
                             std::int64_t length, int threads) {
  constexpr std::int64_t dim = 64;
  static_cast<void>(threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::int64_t h = 0; h < heads; ++h) {
    alignas(64) float state[dim][dim] = {}, sum[dim] = {}, phi_q[dim], phi_k[dim], row[dim];
    for (std::int64_t n = 0; n < length; ++n) {
      const std::int64_t at = (h * length + n) * dim;
      const float* v = v_in + at;
      float denominator = 0;
      for (std::int64_t d = 0; d < dim; ++d) {
        phi_q[d] = feature(q_in[at + d]);
        phi_k[d] = feature(k_in[at + d]);
        row[d] = 0;
      }
      for (std::int64_t d = 0; d < dim; ++d) {
        sum[d] += phi_k[d];
        denominator += phi_q[d] * sum[d];
      }
      for (std::int64_t d = 0; d < dim; ++d) {
        for (std::int64_t e = 0; e < dim; ++e) {
          const float s = state[d][e] + phi_k[d] * v[e];
          state[d][e] = s;
          row[e] += phi_q[d] * s;
        }
      }
      for (std::int64_t e = 0; e < dim; ++e) out[at + e] = row[e] / denominator;
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

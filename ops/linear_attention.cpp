// Reference formula of linear attention.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::reference {

/// out_i = φ(q_i) S / (φ(q_i)·z + ε) with S = Σ_j φ(k_j) v_jᵀ and z = Σ_j φ(k_j) (Katharopoulos et al. 2020, eq. 5),
/// over all keys or, causal, over the keys j ≤ i + (k_len − q_len) (eq. 8–12). Keys from `key_lengths` on are never
/// read. A zero denominator gives 0.
///
/// φ = exp is taken relative to the query's largest exponent and to the largest one of the keys that are read, which
/// cancel: exponents of any size are right as long as the terms that matter are within the range of T.
template <class T>
Array<T> linear_attention(const Array<T>& q_in, const Array<T>& k_in, const Array<T>& v_in, const Array<T>* key_lengths,
                          activation feature, bool causal, double eps, Array<T>* carried) {
  const std::int64_t batch = q_in.shape[0], heads = q_in.shape[1], q_len = q_in.shape[2], dim = q_in.shape[3];
  const std::int64_t kv_heads = k_in.shape[1], k_len = k_in.shape[2], value_dim = v_in.shape[3];
  const std::int64_t group = heads / std::max<std::int64_t>(kv_heads, 1);
  const bool exponents = feature == activation::exp;
  const Array<T> phi_q_array = exponents ? q_in : activate(q_in, feature),
                 phi_k_array = exponents ? k_in : activate(k_in, feature);
  const auto q = shaped<4>(phi_q_array, {batch, heads, q_len, dim});
  const auto k = shaped<4>(phi_k_array, {batch, kv_heads, k_len, dim});
  const auto v = shaped<4>(v_in, {batch, kv_heads, k_len, value_dim});
  Array<T> result = zeros<T>({batch, heads, q_len, value_dim});
  auto out = shaped<4>(result, {batch, heads, q_len, value_dim});

  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t keys = k_len;
    if (key_lengths != nullptr)
      keys =
          std::clamp<std::int64_t>(static_cast<std::int64_t>(key_lengths->data[static_cast<std::size_t>(b)]), 0, k_len);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / group;
      Array<T> state = zeros<T>({dim, value_dim});
      auto s = shaped<2>(state, {dim, value_dim});
      std::vector<T> z(static_cast<std::size_t>(dim));
      if (carried != nullptr) {
        const auto from = shaped<4>(*carried, {batch, heads, dim, value_dim + 1});
        for (std::int64_t d = 0; d < dim; ++d) {
          z[static_cast<std::size_t>(d)] = from(b, h, d, value_dim);
          for (std::int64_t e = 0; e < value_dim; ++e) s(d, e) = from(b, h, d, e);
        }
      }
      T largest_k = -std::numeric_limits<T>::infinity();
      for (std::int64_t j = 0; exponents && j < keys; ++j)
        for (std::int64_t d = 0; d < dim; ++d)
          if (k(b, g, j, d) > largest_k) largest_k = k(b, g, j, d);
      const auto phi_k = [&](std::int64_t j, std::int64_t d) -> T {
        return exponents ? std::exp(k(b, g, j, d) - largest_k) : k(b, g, j, d);
      };
      std::int64_t seen = 0;
      for (std::int64_t i = 0; i < q_len; ++i) {
        const std::int64_t visible = causal ? std::min(i + k_len - q_len + 1, keys) : keys;
        for (; seen < visible; ++seen) {
          for (std::int64_t d = 0; d < dim; ++d) {
            z[static_cast<std::size_t>(d)] += phi_k(seen, d);
            for (std::int64_t e = 0; e < value_dim; ++e) s(d, e) += phi_k(seen, d) * v(b, g, seen, e);
          }
        }
        T largest_q = -std::numeric_limits<T>::infinity();
        for (std::int64_t d = 0; exponents && d < dim; ++d)
          if (q(b, h, i, d) > largest_q) largest_q = q(b, h, i, d);
        const auto phi_q = [&](std::int64_t d) -> T {
          return exponents ? std::exp(q(b, h, i, d) - largest_q) : q(b, h, i, d);
        };
        T denominator = static_cast<T>(eps);
        for (std::int64_t d = 0; d < dim; ++d) denominator += phi_q(d) * z[static_cast<std::size_t>(d)];
        if (denominator == 0 || (seen == 0 && carried == nullptr)) continue;
        for (std::int64_t d = 0; d < dim; ++d)
          for (std::int64_t e = 0; e < value_dim; ++e) out(b, h, i, e) += phi_q(d) * s(d, e) / denominator;
      }
      if (carried == nullptr) continue;
      auto to = shaped<4>(*carried, {batch, heads, dim, value_dim + 1});
      for (std::int64_t d = 0; d < dim; ++d) {
        to(b, h, d, value_dim) = z[static_cast<std::size_t>(d)];
        for (std::int64_t e = 0; e < value_dim; ++e) to(b, h, d, e) = s(d, e);
      }
    }
  }
  return result;
}

template Array<float> linear_attention(const Array<float>&, const Array<float>&, const Array<float>&,
                                       const Array<float>*, activation, bool, double, Array<float>*);
template Array<double> linear_attention(const Array<double>&, const Array<double>&, const Array<double>&,
                                        const Array<double>*, activation, bool, double, Array<double>*);

}  // namespace treadle::reference

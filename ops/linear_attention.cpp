// Reference formula of linear attention.

#include <treadle/ops/arrays.hpp>

#include <algorithm>

namespace treadle::reference {

/// out_i = φ(q_i) S / (φ(q_i)·z + ε) with S = Σ_j φ(k_j) v_jᵀ and z = Σ_j φ(k_j) (Katharopoulos et al. 2020, eq. 5),
/// over all keys or, causal, over the keys j ≤ i + (k_len − q_len) (eq. 8–12). Keys from `key_lengths` on are never
/// read. A zero denominator gives 0.
template <class T>
Array<T> linear_attention(const Array<T>& q_in, const Array<T>& k_in, const Array<T>& v_in, const Array<T>* key_lengths,
                          activation feature, bool causal, double eps) {
  const std::int64_t batch = q_in.shape[0], heads = q_in.shape[1], q_len = q_in.shape[2], dim = q_in.shape[3];
  const std::int64_t kv_heads = k_in.shape[1], k_len = k_in.shape[2], value_dim = v_in.shape[3];
  const std::int64_t group = heads / std::max<std::int64_t>(kv_heads, 1);
  const Array<T> phi_q_array = activate(q_in, feature), phi_k_array = activate(k_in, feature);
  const auto phi_q = shaped<4>(phi_q_array, {batch, heads, q_len, dim});
  const auto phi_k = shaped<4>(phi_k_array, {batch, kv_heads, k_len, dim});
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
      std::int64_t seen = 0;
      for (std::int64_t i = 0; i < q_len; ++i) {
        const std::int64_t visible = causal ? std::min(i + k_len - q_len + 1, keys) : keys;
        for (; seen < visible; ++seen) {
          for (std::int64_t d = 0; d < dim; ++d) {
            z[static_cast<std::size_t>(d)] += phi_k(b, g, seen, d);
            for (std::int64_t e = 0; e < value_dim; ++e) s(d, e) += phi_k(b, g, seen, d) * v(b, g, seen, e);
          }
        }
        T denominator = static_cast<T>(eps);
        for (std::int64_t d = 0; d < dim; ++d) denominator += phi_q(b, h, i, d) * z[static_cast<std::size_t>(d)];
        if (denominator == 0 || seen == 0) continue;
        for (std::int64_t d = 0; d < dim; ++d)
          for (std::int64_t e = 0; e < value_dim; ++e) out(b, h, i, e) += phi_q(b, h, i, d) * s(d, e) / denominator;
      }
    }
  }
  return result;
}

template Array<float> linear_attention(const Array<float>&, const Array<float>&, const Array<float>&,
                                       const Array<float>*, activation, bool, double);
template Array<double> linear_attention(const Array<double>&, const Array<double>&, const Array<double>&,
                                        const Array<double>*, activation, bool, double);

}  // namespace treadle::reference

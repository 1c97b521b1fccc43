// Reference formula of attention.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::reference {

/// out_i = Σ_j p_ij v_j, p_ij = exp(s_ij − lse_i), s_ij = score(scale q_i·k_j + bias_ij) over the keys that the mask
/// keeps (Vaswani et al. 2017, eq. 1). Keys that it drops are never read. A row without keys gives out 0 and lse −inf.
/// A sink is one more logit with value 0: it joins the denominator of p, not lse.
template <class T>
AttentionOutputs<T> attention(const AttentionInputs<T>& in) {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::int64_t batch = in.q.shape[0], heads = in.q.shape[1], q_len = in.q.shape[2], dim = in.q.shape[3];
  const std::int64_t kv_heads = in.k.shape[1], k_len = in.k.shape[2], value_dim = in.v.shape[3];
  const std::int64_t group = heads / std::max<std::int64_t>(kv_heads, 1);
  AttentionOutputs<T> result{zeros<T>({batch, heads, q_len, value_dim}), zeros<T>({batch, heads, q_len})};
  const auto q = shaped<4>(in.q, {batch, heads, q_len, dim});
  const auto k = shaped<4>(in.k, {batch, kv_heads, k_len, dim});
  const auto v = shaped<4>(in.v, {batch, kv_heads, k_len, value_dim});
  const Broadcast4<T> keep(in.mask, T(1)), bias(in.bias, T(0));
  auto out = shaped<4>(result.out, {batch, heads, q_len, value_dim});
  auto lse = shaped<3>(result.lse, {batch, heads, q_len});

  std::vector<std::int64_t> keys;
  std::vector<T> scores;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / group;
      for (std::int64_t i = 0; i < q_len; ++i) {
        keys.clear();
        scores.clear();
        T largest = -infinity;
        for (std::int64_t j = 0; j < k_len; ++j) {
          if (keep(b, h, i, j) == 0) continue;
          T s = 0;
          for (std::int64_t d = 0; d < dim; ++d) s += q(b, h, i, d) * k(b, g, j, d);
          s = static_cast<T>(in.scale) * s + bias(b, h, i, j);
          if (in.score) s = in.score(s, b, h, i, j);
          if (s == -infinity) continue;  // weight 0: its value may be NaN
          keys.push_back(j);
          scores.push_back(s);
          largest = std::max(largest, s);
        }
        lse(b, h, i) = -infinity;
        if (keys.empty()) continue;

        T sum = 0;
        for (const T s : scores) sum += std::exp(s - largest);
        lse(b, h, i) = largest + std::log(sum);
        T shift = largest, denominator = sum;
        if (in.sink != nullptr) {
          const T sink = in.sink->data[static_cast<std::size_t>(h)];
          shift = std::max(largest, sink);
          denominator = sum * std::exp(largest - shift) + std::exp(sink - shift);
        }
        for (std::size_t n = 0; n < keys.size(); ++n) {
          const T p = std::exp(scores[n] - shift) / denominator;
          for (std::int64_t d = 0; d < value_dim; ++d) out(b, h, i, d) += p * v(b, g, keys[n], d);
        }
      }
    }
  }
  return result;
}

template AttentionOutputs<float> attention(const AttentionInputs<float>&);
template AttentionOutputs<double> attention(const AttentionInputs<double>&);

}  // namespace treadle::reference

// Reference formula of attention's probes.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::reference {

/// p_ij = exp(s_ij − lse_i) over the keys that the mask keeps, s as in attention; with a sink, lse_i is
/// log(exp(lse_i) + exp(sink)).
template <class T>
AttentionProbe<T> attention_probe(const AttentionInputs<T>& in, const Array<T>& lse_in, probe what,
                                  std::int64_t top_k) {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::int64_t batch = in.q.shape[0], heads = in.q.shape[1], q_len = in.q.shape[2], dim = in.q.shape[3];
  const std::int64_t kv_heads = in.k.shape[1], k_len = in.k.shape[2],
                     group = heads / std::max<std::int64_t>(kv_heads, 1);
  const auto q = shaped<4>(in.q, {batch, heads, q_len, dim});
  const auto k = shaped<4>(in.k, {batch, kv_heads, k_len, dim});
  const auto lses = shaped<3>(lse_in, {batch, heads, q_len});
  const Broadcast4<T> keep(in.mask, T(1)), bias(in.bias, T(0));
  AttentionProbe<T> r;
  if (what == probe::weights) r.weights = zeros<T>({batch, heads, q_len, k_len});
  if (what == probe::entropy) r.entropy = zeros<T>({batch, heads, q_len});
  if (what == probe::column_sums) r.column_sums = zeros<T>({batch, heads, k_len});
  if (what == probe::top_k) {
    r.indices = zeros<T>({batch, heads, q_len, top_k});
    r.largest = r.indices;
    std::fill(r.indices.data.begin(), r.indices.data.end(), T(-1));
  }

  std::vector<T> scores(static_cast<std::size_t>(k_len));
  std::vector<std::int64_t> order;
  for (std::int64_t row = 0; row < batch * heads * q_len; ++row) {
    const std::int64_t b = row / q_len / heads, h = row / q_len % heads, i = row % q_len;
    T lse = lses(b, h, i);
    if (lse != -infinity && in.sink != nullptr) {
      const T sink = in.sink->data[static_cast<std::size_t>(h)], larger = std::max(lse, sink);
      lse = larger + std::log(std::exp(lse - larger) + std::exp(sink - larger));
    }
    order.clear();
    for (std::int64_t j = 0; j < k_len; ++j) {
      T s = -infinity;
      if (keep(b, h, i, j) != 0) {
        s = 0;
        for (std::int64_t d = 0; d < dim; ++d) s += q(b, h, i, d) * k(b, h / group, j, d);
        s = static_cast<T>(in.scale) * s + bias(b, h, i, j);
        if (in.score) s = in.score(s, b, h, i, j);
      }
      scores[static_cast<std::size_t>(j)] = s;
      if (s == -infinity || lse == -infinity) continue;
      if (!std::isnan(s)) order.push_back(j);  // NaN is never listed
      const T p = std::exp(s - lse);
      if (what == probe::weights) r.weights.data[static_cast<std::size_t>(row * k_len + j)] = p;
      if (what == probe::entropy && p != 0) r.entropy.data[static_cast<std::size_t>(row)] += p * (lse - s);
      if (what == probe::column_sums) r.column_sums.data[static_cast<std::size_t>((row / q_len) * k_len + j)] += p;
    }
    if (what != probe::top_k) continue;
    const auto score = [&](std::int64_t j) { return scores[static_cast<std::size_t>(j)]; };
    std::sort(order.begin(), order.end(),
              [&](auto x, auto y) { return score(x) != score(y) ? score(x) > score(y) : x < y; });
    for (std::size_t n = 0; n < order.size() && n < static_cast<std::size_t>(top_k); ++n) {
      const std::size_t at = static_cast<std::size_t>(row * top_k) + n;
      r.indices.data[at] = static_cast<T>(order[n]);
      r.largest.data[at] = std::exp(score(order[n]) - lse);
    }
  }
  return r;
}

template AttentionProbe<float> attention_probe(const AttentionInputs<float>&, const Array<float>&, probe, std::int64_t);
template AttentionProbe<double> attention_probe(const AttentionInputs<double>&, const Array<double>&, probe,
                                                std::int64_t);

}  // namespace treadle::reference

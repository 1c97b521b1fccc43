// Reference formula of linear attention.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::reference {
namespace {

/// S and z of one head. With exponents, row d holds Σ exp(k_jd − level_d) [v_j | 1] with level_d the largest k_jd so
/// far.
template <class T>
struct HeadState {
  std::int64_t dim, values;
  bool exponents;
  std::vector<T> rows, level;

  HeadState(std::int64_t d, std::int64_t v, bool e)
      : dim(d),
        values(v),
        exponents(e),
        rows(static_cast<std::size_t>(d * (v + 1))),
        level(static_cast<std::size_t>(d), -std::numeric_limits<T>::infinity()) {}

  T& at(std::int64_t d, std::int64_t e) { return rows[static_cast<std::size_t>(d * (values + 1) + e)]; }

  template <class Key, class Value>
  void absorb(Key k, Value v) {
    for (std::int64_t d = 0; d < dim; ++d) {
      T phi = k(d);
      if (exponents) {
        T& c = level[static_cast<std::size_t>(d)];
        if (phi > c && phi < std::numeric_limits<T>::infinity()) {  // an infinite one reaches those who see it
          for (std::int64_t e = 0; e <= values && c > -std::numeric_limits<T>::infinity(); ++e)
            at(d, e) *= std::exp(c - phi);
          c = phi;
        }
        phi = phi == -std::numeric_limits<T>::infinity() ? T{0} : std::exp(phi - c);
      }
      for (std::int64_t e = 0; e < values; ++e) at(d, e) += phi * v(e);
      at(d, values) += phi;
    }
  }

  /// What a query weighs row d with: φ(q)_d, with exponents relative to the largest q_d + level_d.
  template <class Query>
  std::vector<T> weights(Query q) const {
    std::vector<T> w(static_cast<std::size_t>(dim));
    T largest = -std::numeric_limits<T>::infinity();
    for (std::size_t d = 0; d < w.size(); ++d) {
      w[d] = q(static_cast<std::int64_t>(d)) + (exponents ? level[d] : T{0});
      if (w[d] > largest) largest = w[d];
    }
    if (!exponents) return w;
    for (T& x : w) x = x == -std::numeric_limits<T>::infinity() ? T{0} : std::exp(x - largest);
    return w;
  }
};

}  // namespace

/// out_i = φ(q_i) S / (φ(q_i)·z + ε) with S = Σ_j φ(k_j) v_jᵀ and z = Σ_j φ(k_j) (Katharopoulos et al. 2020, eq. 5),
/// over all keys or, causal, over the keys j ≤ i + (k_len − q_len) (eq. 8–12). Keys from `key_lengths` on are never
/// read. A zero denominator gives 0.
///
/// φ = exp: each feature is kept relative to the largest exponent of the keys that were read, and each query relative
/// to its largest sum with those; both cancel, so that exponents of any size are right.
template <class T>
Array<T> linear_attention(const Array<T>& q_in, const Array<T>& k_in, const Array<T>& v_in, const Array<T>* key_lengths,
                          activation feature, bool causal, double eps, Array<T>* carried) {
  const std::int64_t batch = q_in.shape[0], heads = q_in.shape[1], q_len = q_in.shape[2], dim = q_in.shape[3];
  const std::int64_t kv_heads = k_in.shape[1], k_len = k_in.shape[2], value_dim = v_in.shape[3];
  const std::int64_t group = heads / std::max<std::int64_t>(kv_heads, 1);
  const bool exponents = feature == activation::exp;
  const bool as_given = exponents || feature == activation::none;
  const Array<T> phi_q = as_given ? q_in : activate(q_in, feature), phi_k = as_given ? k_in : activate(k_in, feature);
  const auto q = shaped<4>(phi_q, {batch, heads, q_len, dim});
  const auto k = shaped<4>(phi_k, {batch, kv_heads, k_len, dim});
  const auto v = shaped<4>(v_in, {batch, kv_heads, k_len, value_dim});
  const std::int64_t columns = value_dim + (exponents ? 2 : 1);  // of a carried state
  Array<T> result = zeros<T>({batch, heads, q_len, value_dim});
  auto out = shaped<4>(result, {batch, heads, q_len, value_dim});

  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t keys = k_len;
    if (key_lengths != nullptr)
      keys =
          std::clamp<std::int64_t>(static_cast<std::int64_t>(key_lengths->data[static_cast<std::size_t>(b)]), 0, k_len);
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t g = h / group;
      HeadState<T> s(dim, value_dim, exponents);
      if (carried != nullptr) {
        const auto from = shaped<4>(*carried, {batch, heads, dim, columns});
        for (std::int64_t d = 0; d < dim; ++d) {
          for (std::int64_t e = 0; e <= value_dim; ++e) s.at(d, e) = from(b, h, d, e);
          if (exponents && s.at(d, value_dim) != 0) s.level[static_cast<std::size_t>(d)] = from(b, h, d, value_dim + 1);
        }
      }
      std::int64_t seen = 0;
      for (std::int64_t i = 0; i < q_len; ++i) {
        const std::int64_t visible = causal ? std::min(i + k_len - q_len + 1, keys) : keys;
        for (; seen < visible; ++seen)
          s.absorb([&](std::int64_t d) { return k(b, g, seen, d); }, [&](std::int64_t e) { return v(b, g, seen, e); });
        const std::vector<T> w = s.weights([&](std::int64_t d) { return q(b, h, i, d); });
        T denominator = static_cast<T>(eps);
        for (std::int64_t d = 0; d < dim; ++d) denominator += w[static_cast<std::size_t>(d)] * s.at(d, value_dim);
        if (denominator == 0 || (seen == 0 && carried == nullptr)) continue;
        for (std::int64_t d = 0; d < dim; ++d)
          for (std::int64_t e = 0; e < value_dim; ++e)
            out(b, h, i, e) += w[static_cast<std::size_t>(d)] * s.at(d, e) / denominator;
      }
      if (carried == nullptr) continue;
      for (; seen < keys; ++seen)  // no query asked for them
        s.absorb([&](std::int64_t d) { return k(b, g, seen, d); }, [&](std::int64_t e) { return v(b, g, seen, e); });
      auto to = shaped<4>(*carried, {batch, heads, dim, columns});
      for (std::int64_t d = 0; d < dim; ++d) {
        for (std::int64_t e = 0; e <= value_dim; ++e) to(b, h, d, e) = s.at(d, e);
        if (exponents) to(b, h, d, value_dim + 1) = s.at(d, value_dim) != 0 ? s.level[static_cast<std::size_t>(d)] : 0;
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

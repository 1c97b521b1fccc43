// Reference formula of biases by distance.

#include <treadle/ops/arrays.hpp>

namespace treadle::reference {

/// table[bucket(j − i), h], the query's position i counted from the end of the keys unless top_left (Raffel et al.
/// 2020, §2.1).
template <class T>
Array<T> relative_bias(const Array<T>& table, std::int64_t q_len, std::int64_t k_len, const RelativeBuckets& buckets,
                       bool top_left) {
  const std::int64_t heads = table.shape[1], shift = top_left ? 0 : k_len - q_len;
  Array<T> result = zeros<T>({1, heads, q_len, k_len});
  const auto from = shaped<2>(table, {table.shape[0], heads});
  auto out = shaped<3>(result, {heads, q_len, k_len});
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < q_len; ++i)
      for (std::int64_t j = 0; j < k_len; ++j) out(h, i, j) = from(relative_bucket(j - (i + shift), buckets), h);
  return result;
}

template Array<float> relative_bias(const Array<float>&, std::int64_t, std::int64_t, const RelativeBuckets&, bool);
template Array<double> relative_bias(const Array<double>&, std::int64_t, std::int64_t, const RelativeBuckets&, bool);

}  // namespace treadle::reference

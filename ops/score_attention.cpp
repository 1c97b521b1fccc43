// Reference formula of additive scores.

#include <treadle/ops/arrays.hpp>

#include <cmath>

namespace treadle::reference {

/// e_ij = v · tanh(q_i + k_j) (Bahdanau et al. 2015, appendix A.1.2).
template <class T>
Array<T> additive_scores(const Array<T>& q_in, const Array<T>& k_in, const Array<T>& v) {
  const std::size_t rank = q_in.shape.size();
  const std::int64_t n = q_in.shape[rank - 2], m = k_in.shape[rank - 2], width = q_in.shape[rank - 1];
  std::int64_t batch = 1;
  for (std::size_t i = 0; i + 2 < rank; ++i) batch *= q_in.shape[i];
  std::vector<std::int64_t> shape = q_in.shape;
  shape.back() = m;
  Array<T> result = zeros<T>(shape);
  const auto q = shaped<3>(q_in, {batch, n, width}), k = shaped<3>(k_in, {batch, m, width});
  auto out = shaped<3>(result, {batch, n, m});
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t c = 0; c < width; ++c)
          out(b, i, j) += v.data[static_cast<std::size_t>(c)] * std::tanh(q(b, i, c) + k(b, j, c));
  return result;
}

template Array<float> additive_scores(const Array<float>&, const Array<float>&, const Array<float>&);
template Array<double> additive_scores(const Array<double>&, const Array<double>&, const Array<double>&);

}  // namespace treadle::reference

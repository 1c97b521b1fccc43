// Reference formulas of linear and matmul.

#include <treadle/ops/arrays.hpp>

namespace treadle::reference {

/// y = act(x Wᵀ + b) + residual, W [out, in].
template <class T>
Array<T> linear(const Array<T>& x, const Array<T>& weight, const Array<T>* bias, const Array<T>* residual,
                activation function) {
  const std::int64_t rows = rows_of(x), in = weight.shape[1], out = weight.shape[0];
  std::vector<std::int64_t> shape = x.shape;
  shape.back() = out;
  Array<T> result = zeros<T>(shape);
  const auto a = shaped<2>(x, {rows, in});
  const auto w = shaped<2>(weight, {out, in});
  auto y = shaped<2>(result, {rows, out});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t o = 0; o < out; ++o) {
      T sum = 0;
      for (std::int64_t i = 0; i < in; ++i) sum += a(r, i) * w(o, i);
      if (bias != nullptr) sum += bias->data[static_cast<std::size_t>(o)];
      y(r, o) = activate(sum, function);
    }
  }
  return residual != nullptr ? add(result, *residual) : result;
}

/// c[.., i, j] = Σ_l a[.., i, l] b[.., l, j]; batch dims broadcast from the right.
template <class T>
Array<T> matmul(const Array<T>& a, const Array<T>& b) {
  const std::int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
  const std::vector<std::int64_t> batch_a(a.shape.begin(), a.shape.end() - 2),
      batch_b(b.shape.begin(), b.shape.end() - 2);
  std::vector<std::int64_t> shape = broadcast_shape(batch_a, batch_b);
  const std::int64_t batches = elements(shape);

  // Which matrix of an operand stands at each batch index: its own numbers, broadcast.
  const auto matrices = [&](const std::vector<std::int64_t>& batch) {
    Array<T> index = zeros<T>(batch);
    for (std::size_t i = 0; i < index.data.size(); ++i) index.data[i] = static_cast<T>(i);
    return add(index, zeros<T>(shape));
  };
  const Array<T> of_a = matrices(batch_a), of_b = matrices(batch_b);

  shape.insert(shape.end(), {m, n});
  Array<T> result = zeros<T>(shape);
  const auto left = shaped<3>(a, {elements(batch_a), m, k});
  const auto right = shaped<3>(b, {elements(batch_b), k, n});
  auto c = shaped<3>(result, {batches, m, n});
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto x = static_cast<std::int64_t>(of_a.data[static_cast<std::size_t>(i)]);
    const auto y = static_cast<std::int64_t>(of_b.data[static_cast<std::size_t>(i)]);
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t l = 0; l < k; ++l)
        for (std::int64_t column = 0; column < n; ++column) c(i, row, column) += left(x, row, l) * right(y, l, column);
  }
  return result;
}

template Array<float> linear(const Array<float>&, const Array<float>&, const Array<float>*, const Array<float>*,
                             activation);
template Array<double> linear(const Array<double>&, const Array<double>&, const Array<double>*, const Array<double>*,
                              activation);
template Array<float> matmul(const Array<float>&, const Array<float>&);
template Array<double> matmul(const Array<double>&, const Array<double>&);

}  // namespace treadle::reference

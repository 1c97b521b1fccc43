// Reference formulas of positive random features.

#include <treadle/ops/arrays.hpp>

#include <cmath>

namespace treadle::reference {
namespace {

/// Normal numbers by Box and Muller over splitmix64: the same on every platform.
struct Normal {
  std::uint64_t state;
  double uniform() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (static_cast<double>(z >> 11) + 0.5) * 0x1p-53;
  }
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
};

}  // namespace

/// Blocks of head_dim Gaussian rows made orthogonal (Gram and Schmidt) and given the lengths that independent Gaussian
/// rows would have: each row alone is Gaussian, so that the features stay unbiased (Choromanski et al. 2021, §3.2).
template <class T>
Array<T> random_projection(std::int64_t features, std::int64_t head_dim, std::int64_t seed) {
  Normal normal{static_cast<std::uint64_t>(seed)};
  Array<T> result = zeros<T>({features, head_dim});
  const auto dim = static_cast<std::size_t>(head_dim);
  std::vector<std::vector<double>> block;
  const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t c = 0; c < dim; ++c) sum += a[c] * b[c];
    return sum;
  };
  for (std::int64_t f = 0; f < features; ++f) {
    if (f % head_dim == 0) block.clear();
    std::vector<double> row(dim);
    double length = 0;
    while (length < 1e-6) {  // a row within the span of the others is drawn again
      for (double& x : row) x = normal();
      for (int pass = 0; pass < 2; ++pass)  // twice: one pass leaves what rounding put back
        for (const auto& other : block) {
          const double along = dot(row, other);
          for (std::size_t c = 0; c < dim; ++c) row[c] -= along * other[c];
        }
      length = std::sqrt(dot(row, row));
    }
    for (double& x : row) x /= length;
    block.push_back(row);
    double square = 0;
    for (std::size_t c = 0; c < dim; ++c) {
      const double x = normal();
      square += x * x;
    }
    for (std::size_t c = 0; c < dim; ++c)
      result.data[static_cast<std::size_t>(f) * dim + c] = static_cast<T>(std::sqrt(square) * row[c]);
  }
  return result;
}

/// scale · w_f·x − scale² |x|² / 2 (Choromanski et al. 2021, lemma 1).
template <class T>
Array<T> random_features(const Array<T>& x_in, const Array<T>& projection, double scale) {
  const std::int64_t rows = rows_of(x_in), dim = projection.shape[1], features = projection.shape[0];
  std::vector<std::int64_t> shape = x_in.shape;
  shape.back() = features;
  Array<T> result = zeros<T>(shape);
  const auto x = shaped<2>(x_in, {rows, dim}), w = shaped<2>(projection, {features, dim});
  auto out = shaped<2>(result, {rows, features});
  const auto s = static_cast<T>(scale);
  for (std::int64_t r = 0; r < rows; ++r) {
    T square = 0;
    for (std::int64_t c = 0; c < dim; ++c) square += x(r, c) * x(r, c);
    for (std::int64_t f = 0; f < features; ++f) {
      T along = 0;
      for (std::int64_t c = 0; c < dim; ++c) along += x(r, c) * w(f, c);
      out(r, f) = s * along - s * s * square / 2;
    }
  }
  return result;
}

template Array<float> random_projection(std::int64_t, std::int64_t, std::int64_t);
template Array<double> random_projection(std::int64_t, std::int64_t, std::int64_t);
template Array<float> random_features(const Array<float>&, const Array<float>&, double);
template Array<double> random_features(const Array<double>&, const Array<double>&, double);

}  // namespace treadle::reference

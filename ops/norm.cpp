// Reference formulas of layer norm and RMS norm.

#include <treadle/ops/arrays.hpp>

#include <cmath>

namespace treadle::reference {
namespace {

/// Multiplies by gamma and adds beta, where given, along the last dim.
template <class T>
void affine(Array<T>& x, const Array<T>* gamma, const Array<T>* beta) {
  if (gamma != nullptr) x = multiply(x, *gamma);
  if (beta != nullptr) x = add(x, *beta);
}

}  // namespace

/// (x − μ) / √(σ² + ε) · γ + β (Ba et al. 2016, eq. 4). The variance is a second pass over x − μ: E[x²] − E[x]²
/// cancels.
template <class T>
Array<T> layer_norm(const Array<T>& x, const Array<T>* gamma, const Array<T>* beta, double eps) {
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  Array<T> out = zeros<T>(x.shape);
  const auto from = shaped<2>(x, {rows, width});
  auto to = shaped<2>(out, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    T mean = 0, variance = 0;
    for (std::int64_t c = 0; c < width; ++c) mean += from(r, c);
    mean /= static_cast<T>(width);
    for (std::int64_t c = 0; c < width; ++c) variance += (from(r, c) - mean) * (from(r, c) - mean);
    variance /= static_cast<T>(width);
    const T deviation = std::sqrt(variance + static_cast<T>(eps));
    for (std::int64_t c = 0; c < width; ++c) to(r, c) = (from(r, c) - mean) / deviation;
  }
  affine(out, gamma, beta);
  return out;
}

/// x / √(mean(x²) + ε) · γ (Zhang and Sennrich 2019, eq. 4).
template <class T>
Array<T> rms_norm(const Array<T>& x, const Array<T>* gamma, double eps) {
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  Array<T> out = zeros<T>(x.shape);
  const auto from = shaped<2>(x, {rows, width});
  auto to = shaped<2>(out, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    T square = 0;
    for (std::int64_t c = 0; c < width; ++c) square += from(r, c) * from(r, c);
    const T root = std::sqrt(square / static_cast<T>(width) + static_cast<T>(eps));
    for (std::int64_t c = 0; c < width; ++c) to(r, c) = from(r, c) / root;
  }
  affine<T>(out, gamma, nullptr);
  return out;
}

template Array<float> layer_norm(const Array<float>&, const Array<float>*, const Array<float>*, double);
template Array<double> layer_norm(const Array<double>&, const Array<double>*, const Array<double>*, double);
template Array<float> rms_norm(const Array<float>&, const Array<float>*, double);
template Array<double> rms_norm(const Array<double>&, const Array<double>*, double);

}  // namespace treadle::reference

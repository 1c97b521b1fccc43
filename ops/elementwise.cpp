// Reference formulas of add, multiply, scale, softcap and the activations.

#include <treadle/ops/arrays.hpp>

#include <cmath>
#include <numbers>

namespace treadle::reference {

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t d : shape) n *= d;
  return n;
}

template <class T>
Array<T> add(const Array<T>& a, const Array<T>& b) {
  if (a.data.empty() || b.data.empty()) return zeros<T>(broadcast_shape(a.shape, b.shape));
  return collect<T>(dynamic(a) + dynamic(b));
}

template <class T>
Array<T> multiply(const Array<T>& a, const Array<T>& b) {
  if (a.data.empty() || b.data.empty()) return zeros<T>(broadcast_shape(a.shape, b.shape));
  return collect<T>(dynamic(a) * dynamic(b));
}

template <class T>
Array<T> scale(const Array<T>& x, double factor) {
  Array<T> out = x;
  for (T& v : out.data) v *= static_cast<T>(factor);
  return out;
}

template <class T>
Array<T> softcap(const Array<T>& x, double c) {
  Array<T> out = x;
  const T cap = static_cast<T>(c);
  for (T& v : out.data) v = cap * std::tanh(v / cap);
  return out;
}

template <class T>
Array<T> dropout(const Array<T>& x, const Array<T>& keep, double p) {
  Array<T> out = zeros<T>(x.shape);
  if (out.data.empty()) return out;
  const auto pattern = dynamic(keep);
  const xt::xarray<T> kept = xt::broadcast(pattern, std::vector<std::size_t>(x.shape.begin(), x.shape.end()));
  for (std::size_t i = 0; i < out.data.size(); ++i)
    if (kept.data()[i] != 0 && p < 1) out.data[i] = x.data[i] / static_cast<T>(1 - p);
  return out;
}

template <class T>
T activate(T x, activation function, double alpha) {
  const T half = T(0.5), one = T(1);
  switch (function) {
    case activation::none: return x;
    case activation::relu: return x < 0 ? T(0) : x;
    // x Φ(x) (Hendrycks and Gimpel 2016, §2), and the approximation of the same section.
    case activation::gelu: return half * x * (one + std::erf(x / std::numbers::sqrt2_v<T>));
    case activation::gelu_tanh: {
      const T root = std::sqrt(T(2) / std::numbers::pi_v<T>);
      return half * x * (one + std::tanh(root * (x + T(0.044715) * x * x * x)));
    }
    // x σ(x) (Elfwing et al. 2018)
    case activation::silu: return x / (one + std::exp(-x));
    case activation::sigmoid: return one / (one + std::exp(-x));
    case activation::tanh: return std::tanh(x);
    case activation::exp: return std::exp(x);
    case activation::erf: return std::erf(x);
    // elu(x) + 1 (Katharopoulos et al. 2020, eq. 7)
    case activation::elu_plus_one: return x > 0 ? x + one : std::exp(x);
    case activation::log: return std::log(x);
    // log(1 + eˣ) without overflow and without losing eˣ beside 1.
    case activation::softplus: return (x < 0 ? T(0) : x) + std::log1p(std::exp(-std::abs(x)));
    // Clevert et al. 2016, eq. 15
    case activation::elu: return x > 0 ? x : static_cast<T>(alpha) * std::expm1(x);
    // So et al. 2021, §3
    case activation::squared_relu: return x < 0 ? T(0) : x * x;
    // x σ(1.702 x) (Hendrycks and Gimpel 2016, §2)
    case activation::quick_gelu: return x / (one + std::exp(T(-1.702) * x));
  }
  return x;
}

template <class T>
Array<T> activate(const Array<T>& x, activation function, double alpha) {
  Array<T> out = x;
  for (T& v : out.data) v = activate(v, function, alpha);
  return out;
}

template Array<float> add(const Array<float>&, const Array<float>&);
template Array<double> add(const Array<double>&, const Array<double>&);
template Array<float> multiply(const Array<float>&, const Array<float>&);
template Array<double> multiply(const Array<double>&, const Array<double>&);
template Array<float> scale(const Array<float>&, double);
template Array<double> scale(const Array<double>&, double);
template Array<float> dropout(const Array<float>&, const Array<float>&, double);
template Array<double> dropout(const Array<double>&, const Array<double>&, double);
template Array<float> softcap(const Array<float>&, double);
template Array<double> softcap(const Array<double>&, double);
template float activate(float, activation, double);
template double activate(double, activation, double);
template Array<float> activate(const Array<float>&, activation, double);
template Array<double> activate(const Array<double>&, activation, double);

}  // namespace treadle::reference

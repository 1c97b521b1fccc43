// Reference formulas of softmax, log-softmax, log-sum-exp, argmax and cross-entropy.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace treadle::reference {

/// exp(x − max) / Σ exp(x − max) over the last dim. A row of only −inf has nothing to choose from and gives 0.
template <class T>
Array<T> softmax(const Array<T>& x) {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  Array<T> out = zeros<T>(x.shape);
  const auto from = shaped<2>(x, {rows, width});
  auto to = shaped<2>(out, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    T largest = -infinity, sum = 0;
    bool empty = true;
    for (std::int64_t c = 0; c < width; ++c) {
      largest = std::max(largest, from(r, c));
      empty = empty && from(r, c) == -infinity;
    }
    if (empty) continue;
    for (std::int64_t c = 0; c < width; ++c) sum += to(r, c) = std::exp(from(r, c) - largest);
    for (std::int64_t c = 0; c < width; ++c) to(r, c) /= sum;
  }
  return out;
}

/// log Σ exp(x) = max + log Σ exp(x − max). An infinite maximum is not subtracted: ∞ − ∞ would be NaN.
template <class T>
Array<T> logsumexp(const Array<T>& x) {
  const T infinity = std::numeric_limits<T>::infinity();
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  Array<T> out = zeros<T>({x.shape.begin(), x.shape.end() - 1});
  const auto from = shaped<2>(x, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    T largest = -infinity, sum = 0;
    for (std::int64_t c = 0; c < width; ++c) largest = std::max(largest, from(r, c));
    if (std::isinf(largest)) largest = 0;
    for (std::int64_t c = 0; c < width; ++c) sum += std::exp(from(r, c) - largest);
    out.data[static_cast<std::size_t>(r)] = largest + std::log(sum);
  }
  return out;
}

template <class T>
Array<T> log_softmax(const Array<T>& x) {
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  const Array<T> lse = logsumexp(x);
  Array<T> out = zeros<T>(x.shape);
  const auto from = shaped<2>(x, {rows, width});
  auto to = shaped<2>(out, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    const T sum = lse.data[static_cast<std::size_t>(r)];
    const bool empty = sum == -std::numeric_limits<T>::infinity();
    for (std::int64_t c = 0; c < width; ++c) to(r, c) = empty ? sum : from(r, c) - sum;
  }
  return out;
}

template <class T>
Array<T> argmax(const Array<T>& x) {
  const std::int64_t rows = rows_of(x), width = x.shape.back();
  if (width == 0) throw std::invalid_argument("argmax over an empty dim; at least 1 element is needed");
  Array<T> out = zeros<T>({x.shape.begin(), x.shape.end() - 1});
  const auto from = shaped<2>(x, {rows, width});
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t best = 0;
    for (std::int64_t c = 1; c < width && !std::isnan(from(r, best)); ++c)
      if (std::isnan(from(r, c)) || from(r, c) > from(r, best)) best = c;
    out.data[static_cast<std::size_t>(r)] = static_cast<T>(best);
  }
  return out;
}

template <class T>
Array<T> cross_entropy(const Array<T>& logits, const Array<T>& ids, reduction how, std::int64_t ignore_index) {
  const std::int64_t vocabulary = logits.shape.back();
  const Array<T> lse = logsumexp(logits);
  Array<T> losses = zeros<T>(ids.shape);
  T sum = 0, counted = 0;
  for (std::int64_t r = 0; r < ids.size(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const auto id = static_cast<std::int64_t>(ids.data[i]);
    if (id == ignore_index) continue;
    if (id < 0 || id >= vocabulary)
      throw std::out_of_range("id " + std::to_string(id) + " is no class; ids are 0 to " +
                              std::to_string(vocabulary - 1) + ", or " + std::to_string(ignore_index) + " to ignore");
    losses.data[i] = lse.data[i] - logits.data[static_cast<std::size_t>(r * vocabulary + id)];
    sum += losses.data[i];
    counted += 1;
  }
  if (how == reduction::none) return losses;
  return {{}, {how == reduction::sum ? sum : sum / counted}};
}

template Array<float> softmax(const Array<float>&);
template Array<double> softmax(const Array<double>&);
template Array<float> log_softmax(const Array<float>&);
template Array<double> log_softmax(const Array<double>&);
template Array<float> logsumexp(const Array<float>&);
template Array<double> logsumexp(const Array<double>&);
template Array<float> argmax(const Array<float>&);
template Array<double> argmax(const Array<double>&);
template Array<float> cross_entropy(const Array<float>&, const Array<float>&, reduction, std::int64_t);
template Array<double> cross_entropy(const Array<double>&, const Array<double>&, reduction, std::int64_t);

}  // namespace treadle::reference

// Reference formula of pooling.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace treadle::reference {

/// x as [batch, outer, n, d]; `key_lengths` (one for each batch element) says how many of the n count. 0 if none does.
template <class T>
Array<T> pool(const Array<T>& x, const Array<T>* key_lengths, reduction how) {
  const std::size_t rank = x.shape.size();
  const std::int64_t n = x.shape[rank - 2], d = x.shape[rank - 1];
  const std::int64_t batch = key_lengths == nullptr ? 1 : x.shape[0];
  std::vector<std::int64_t> shape(x.shape.begin(), x.shape.end() - 2);
  const std::int64_t outer = batch == 0 ? 0 : elements(shape) / batch;
  shape.push_back(d);
  if (how == reduction::first && n == 0) throw std::invalid_argument("the first of 0 tokens; at least 1 is needed");
  Array<T> out = zeros<T>(shape);
  const auto from = shaped<4>(x, {batch, outer, n, d});
  auto to = shaped<3>(out, {batch, outer, d});
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t count = how == reduction::first ? 1 : n;
    if (key_lengths != nullptr)
      count = std::clamp<std::int64_t>(static_cast<std::int64_t>(key_lengths->data[static_cast<std::size_t>(b)]), 0, n);
    if (count == 0) continue;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t c = 0; c < d; ++c) {
        T value = from(b, o, 0, c);
        for (std::int64_t i = 1; i < count; ++i) {
          const T next = from(b, o, i, c);
          if (how == reduction::mean) value += next;
          if (how == reduction::max && (next > value || std::isnan(next))) value = next;
        }
        to(b, o, c) = how == reduction::mean ? value / static_cast<T>(count) : value;
      }
    }
  }
  return out;
}

/// Runs of `each` positions, the last of what is left: every run by the formula above.
template <class T>
Array<T> pool_runs(const Array<T>& x, std::int64_t each, reduction how) {
  const std::size_t rank = x.shape.size();
  const std::int64_t n = x.shape[rank - 2], d = x.shape[rank - 1], runs = n == 0 ? 0 : (n + each - 1) / each;
  std::vector<std::int64_t> shape = x.shape;
  shape[rank - 2] = runs;
  Array<T> out = zeros<T>(shape);
  const std::int64_t outer = elements({x.shape.begin(), x.shape.end() - 2});
  const auto from = shaped<3>(x, {outer, n, d});
  auto to = shaped<3>(out, {outer, runs, d});
  for (std::int64_t r = 0; r < runs; ++r) {
    const std::int64_t begin = r * each, length = std::min(each, n - begin);
    Array<T> run = zeros<T>({outer, length, d});
    auto part = shaped<3>(run, {outer, length, d});
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t c = 0; c < d; ++c) part(o, i, c) = from(o, begin + i, c);
    const Array<T> one = pool<T>(run, nullptr, how);
    const auto value = shaped<2>(one, {outer, d});
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t c = 0; c < d; ++c) to(o, r, c) = value(o, c);
  }
  return out;
}

template Array<float> pool_runs(const Array<float>&, std::int64_t, reduction);
template Array<double> pool_runs(const Array<double>&, std::int64_t, reduction);
template Array<float> pool(const Array<float>&, const Array<float>*, reduction);
template Array<double> pool(const Array<double>&, const Array<double>*, reduction);

}  // namespace treadle::reference

// Reference formula of gather.

#include <treadle/ops/arrays.hpp>

#include <stdexcept>
#include <string>

namespace treadle::reference {

/// x as [batch, outer, n, inner], ids as [batch, count] → [batch, outer, count, inner].
template <class T>
Array<T> gather(const Array<T>& x, const Array<T>& ids, std::int64_t axis, std::int64_t batch_dims) {
  const auto product = [](auto first, auto last) {
    std::int64_t n = 1;
    for (; first != last; ++first) n *= *first;
    return n;
  };
  const auto at = x.shape.begin() + axis, own = ids.shape.begin() + batch_dims;
  const std::int64_t batch = product(x.shape.begin(), x.shape.begin() + batch_dims),
                     outer = product(x.shape.begin() + batch_dims, at), rows = *at,
                     inner = product(at + 1, x.shape.end()), count = product(own, ids.shape.end());
  std::vector<std::int64_t> shape(x.shape.begin(), at);
  shape.insert(shape.end(), own, ids.shape.end());
  shape.insert(shape.end(), at + 1, x.shape.end());
  Array<T> out = zeros<T>(shape);
  const auto from = shaped<4>(x, {batch, outer, rows, inner});
  const auto which = shaped<2>(ids, {batch, count});
  auto to = shaped<4>(out, {batch, outer, count, inner});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::int64_t>(which(b, i));
      if (id < 0 || id >= rows)
        throw std::out_of_range("id " + std::to_string(id) + " is outside axis " + std::to_string(axis) +
                                "; ids are 0 to " + std::to_string(rows - 1));
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t c = 0; c < inner; ++c) to(b, o, i, c) = from(b, o, id, c);
    }
  }
  return out;
}

template Array<float> gather(const Array<float>&, const Array<float>&, std::int64_t, std::int64_t);
template Array<double> gather(const Array<double>&, const Array<double>&, std::int64_t, std::int64_t);

}  // namespace treadle::reference

// Reference formulas of embedding, learned and sinusoidal positions.

#include <treadle/ops/arrays.hpp>

#include <cmath>
#include <stdexcept>
#include <string>

namespace treadle::reference {

template <class T>
Array<T> embedding(const Array<T>& table, const Array<T>& ids) {
  const std::int64_t vocabulary = table.shape[0], width = table.shape[1];
  std::vector<std::int64_t> shape = ids.shape;
  shape.push_back(width);
  Array<T> out = zeros<T>(shape);
  const auto from = shaped<2>(table, {vocabulary, width});
  auto to = shaped<2>(out, {ids.size(), width});
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const auto id = static_cast<std::int64_t>(ids.data[static_cast<std::size_t>(i)]);
    if (id < 0 || id >= vocabulary)
      throw std::out_of_range("id " + std::to_string(id) + " is outside the table; ids are 0 to " +
                              std::to_string(vocabulary - 1));
    for (std::int64_t c = 0; c < width; ++c) to(i, c) = from(id, c);
  }
  return out;
}

template <class T>
Array<T> positions(const Array<T>& table, std::int64_t offset, std::int64_t length) {
  if (offset < 0 || offset + length > table.shape[0])
    throw std::out_of_range("positions " + std::to_string(offset) + " to " + std::to_string(offset + length - 1) +
                            " are outside the table; it holds " + std::to_string(table.shape[0]));
  return slice(table, 0, offset, length);
}

/// PE(p, 2i) = sin(p / base^(2i/width)), PE(p, 2i+1) = cos(p / base^(2i/width)) (Vaswani et al. 2017, §3.5). Computed
/// in double: the angle of a late position has few correct digits in float.
template <class T>
Array<T> sinusoidal_positions(std::int64_t offset, std::int64_t length, std::int64_t width, double base) {
  Array<T> out = zeros<T>({length, width});
  auto to = shaped<2>(out, {length, width});
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t c = 0; c < width; ++c) {
      const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(width);
      const double angle = static_cast<double>(offset + p) / std::pow(base, exponent);
      to(p, c) = static_cast<T>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return out;
}

template Array<float> embedding(const Array<float>&, const Array<float>&);
template Array<double> embedding(const Array<double>&, const Array<double>&);
template Array<float> positions(const Array<float>&, std::int64_t, std::int64_t);
template Array<double> positions(const Array<double>&, std::int64_t, std::int64_t);
template Array<float> sinusoidal_positions(std::int64_t, std::int64_t, std::int64_t, double);
template Array<double> sinusoidal_positions(std::int64_t, std::int64_t, std::int64_t, double);

}  // namespace treadle::reference

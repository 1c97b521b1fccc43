// Reference formula of rotary positions.

#include <treadle/ops/arrays.hpp>
#include <treadle/ops/position_tables.hpp>

#include <cmath>

namespace treadle::reference {

/// Pair i of a row at position p is turned by p · frequency i, computed in double (Su et al. 2021, eq. 34).
template <class T>
Array<T> rope(const Array<T>& x, const Array<T>* positions, const RotaryAngles& angles, rope_layout layout,
              std::int64_t offset) {
  const RotaryFrequencies frequencies = rotary_frequencies(angles);
  const std::int64_t batch = x.shape[0], heads = x.shape[1], length = x.shape[2], dim = x.shape[3];
  const std::int64_t half = angles.rotary_dim / 2;
  Array<T> result = x;
  const auto in = shaped<4>(x, {batch, heads, length, dim});
  auto out = shaped<4>(result, {batch, heads, length, dim});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t n = 0; n < length; ++n) {
      double position = static_cast<double>(offset + n);
      if (positions != nullptr) {
        const std::int64_t at = positions->rank() == 2 ? b * length + n : n;
        position = static_cast<double>(offset) + static_cast<double>(positions->data[static_cast<std::size_t>(at)]);
      }
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = position * frequencies.values[static_cast<std::size_t>(i)];
        const T c = static_cast<T>(std::cos(angle) * frequencies.magnitude),
                s = static_cast<T>(std::sin(angle) * frequencies.magnitude);
        const std::int64_t first = layout == rope_layout::half ? i : 2 * i;
        const std::int64_t second = layout == rope_layout::half ? i + half : 2 * i + 1;
        for (std::int64_t h = 0; h < heads; ++h) {
          const T a = in(b, h, n, first), z = in(b, h, n, second);
          out(b, h, n, first) = a * c - z * s;
          out(b, h, n, second) = a * s + z * c;
        }
      }
    }
  }
  return result;
}

template Array<float> rope(const Array<float>&, const Array<float>*, const RotaryAngles&, rope_layout, std::int64_t);
template Array<double> rope(const Array<double>&, const Array<double>*, const RotaryAngles&, rope_layout, std::int64_t);

}  // namespace treadle::reference

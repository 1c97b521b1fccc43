// Reference formula of retention, gated linear attention and the delta rule.

#include <treadle/ops/arrays.hpp>

#include <algorithm>
#include <cmath>

namespace treadle::reference {

/// Token by token, as the equations say (ops/recurrent_attention.hpp).
template <class T>
Array<T> recurrent_attention(const RecurrentInputs<T>& in, Array<T>& carried) {
  const std::int64_t batch = in.q.shape[0], heads = in.q.shape[1], length = in.q.shape[2], dim = in.q.shape[3];
  const std::int64_t kv_heads = in.k.shape[1], values = in.v.shape[3];
  const std::int64_t group = heads / std::max<std::int64_t>(kv_heads, 1);
  const auto q = shaped<4>(in.q, {batch, heads, length, dim}), k = shaped<4>(in.k, {batch, kv_heads, length, dim}),
             v = shaped<4>(in.v, {batch, kv_heads, length, values});
  const Broadcast4<T> gate(in.log_gate, T{0});
  Array<T> result = zeros<T>({batch, heads, length, values});
  auto out = shaped<4>(result, {batch, heads, length, values}), s = shaped<4>(carried, {batch, heads, dim, values});
  std::vector<T> u(static_cast<std::size_t>(values));
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t t = 0; t < length; ++t) {
        const std::int64_t g = h / group;
        if (in.log_gate != nullptr)
          for (std::int64_t d = 0; d < dim; ++d) {
            const T factor = std::exp(gate(b, h, t, d));
            for (std::int64_t e = 0; e < values; ++e) s(b, h, d, e) = factor == 0 ? T{0} : factor * s(b, h, d, e);
          }
        for (std::int64_t e = 0; e < values; ++e) {
          T x = v(b, g, t, e);
          if (in.beta != nullptr) {
            for (std::int64_t d = 0; d < dim; ++d) x -= k(b, g, t, d) * s(b, h, d, e);
            x *= in.beta->data[static_cast<std::size_t>((b * heads + h) * length + t)];
          }
          u[static_cast<std::size_t>(e)] = x;
        }
        for (std::int64_t d = 0; d < dim; ++d)
          for (std::int64_t e = 0; e < values; ++e) {
            s(b, h, d, e) += k(b, g, t, d) * u[static_cast<std::size_t>(e)];
            out(b, h, t, e) += static_cast<T>(in.scale) * q(b, h, t, d) * s(b, h, d, e);
          }
      }
  return result;
}

template Array<float> recurrent_attention(const RecurrentInputs<float>&, Array<float>&);
template Array<double> recurrent_attention(const RecurrentInputs<double>&, Array<double>&);

}  // namespace treadle::reference

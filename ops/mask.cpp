// Reference formulas of masks: any number but 0 keeps.

#include <treadle/ops/arrays.hpp>

#include <limits>

namespace treadle::reference {

template <class T>
Array<T> mask(const std::vector<std::int64_t>& shape, const Position& expression, const Array<T>* tensor) {
  Array<T> out = zeros<T>(shape);
  auto keep = shaped<4>(out, {shape[0], shape[1], shape[2], shape[3]});
  const Broadcast4<T> given(tensor, T(1));
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t q = 0; q < shape[2]; ++q)
        for (std::int64_t k = 0; k < shape[3]; ++k)
          keep(b, h, q, k) = given(b, h, q, k) != 0 && (!expression || expression(b, h, q, k)) ? T(1) : T(0);
  return out;
}

template <class T>
Array<T> mask_to_bias(const Array<T>& mask) {
  Array<T> out = mask;
  for (T& v : out.data) v = v != 0 ? T(0) : -std::numeric_limits<T>::infinity();
  return out;
}

template <class T>
Array<T> select(const Array<T>& mask, const Array<T>& x, double value) {
  const Array<T> nothing = zeros<T>(broadcast_shape(mask.shape, x.shape));
  const Array<T> keep = add(mask, nothing);
  Array<T> out = add(x, nothing);
  // A choice, not a product: what the mask drops may be NaN.
  for (std::size_t i = 0; i < out.data.size(); ++i)
    if (keep.data[i] == 0) out.data[i] = static_cast<T>(value);
  return out;
}

template Array<float> mask(const std::vector<std::int64_t>&, const Position&, const Array<float>*);
template Array<double> mask(const std::vector<std::int64_t>&, const Position&, const Array<double>*);
template Array<float> mask_to_bias(const Array<float>&);
template Array<double> mask_to_bias(const Array<double>&);
template Array<float> select(const Array<float>&, const Array<float>&, double);
template Array<double> select(const Array<double>&, const Array<double>&, double);

}  // namespace treadle::reference

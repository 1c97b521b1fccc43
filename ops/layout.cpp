// Reference formulas of the ops that move data: transpose, split and merge heads, concatenate, slice, append.

#include <treadle/ops/arrays.hpp>

#include <xtensor/xmanipulation.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xstrided_view.hpp>

namespace treadle::reference {
namespace {

/// The part [begin, begin + length) along one axis, as a view that can be read and assigned.
template <class Expression>
auto part(Expression& e, std::size_t rank, int axis, std::int64_t begin, std::int64_t length) {
  xt::xstrided_slice_vector slices(rank, xt::all());
  slices[static_cast<std::size_t>(axis)] = xt::range(begin, begin + length);
  return xt::strided_view(e, slices);
}

/// to[begin : begin + length along axis] = from
template <class T>
void write(Array<T>& to, const Array<T>& from, int axis, std::int64_t begin) {
  if (from.data.empty()) return;
  auto target = dynamic(to);
  auto rows = part(target, to.shape.size(), axis, begin, from.shape[static_cast<std::size_t>(axis)]);
  // A plain assignment makes a temporary whose rank xtensor 0.24 takes from the capacity of its small vectors: 4, not
  // the rank.
  xt::noalias(rows) = dynamic(from);
}

}  // namespace

template <class T>
Array<T> transpose(const Array<T>& x, const std::vector<int>& perm) {
  std::vector<std::int64_t> shape;
  for (const int axis : perm) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  if (x.data.empty()) return zeros<T>(shape);
  const auto source = dynamic(x);
  return collect<T>(xt::transpose(source, std::vector<std::size_t>(perm.begin(), perm.end())));
}

template <class T>
Array<T> split_heads(const Array<T>& x, std::int64_t heads) {
  const std::size_t rank = x.shape.size();
  const std::int64_t length = x.shape[rank - 2], dim = x.shape[rank - 1] / heads;
  std::vector<std::int64_t> shape(x.shape.begin(), x.shape.end() - 2);
  std::int64_t batch = 1;
  for (const std::int64_t d : shape) batch *= d;
  const Array<T> apart{{batch, length, heads, dim}, x.data};
  Array<T> out = transpose(apart, {0, 2, 1, 3});
  shape.insert(shape.end(), {heads, length, dim});
  out.shape = shape;
  return out;
}

template <class T>
Array<T> merge_heads(const Array<T>& x) {
  const std::size_t rank = x.shape.size();
  const std::int64_t heads = x.shape[rank - 3], length = x.shape[rank - 2], dim = x.shape[rank - 1];
  std::vector<std::int64_t> shape(x.shape.begin(), x.shape.end() - 3);
  std::int64_t batch = 1;
  for (const std::int64_t d : shape) batch *= d;
  Array<T> out = transpose(Array<T>{{batch, heads, length, dim}, x.data}, {0, 2, 1, 3});
  shape.insert(shape.end(), {length, heads * dim});
  out.shape = shape;
  return out;
}

template <class T>
Array<T> concatenate(const std::vector<const Array<T>*>& parts, int axis) {
  const auto a = static_cast<std::size_t>(axis);
  std::vector<std::int64_t> shape = parts[0]->shape;
  shape[a] = 0;
  for (const Array<T>* p : parts) shape[a] += p->shape[a];
  Array<T> out = zeros<T>(shape);
  std::int64_t begin = 0;
  for (const Array<T>* p : parts) {
    write(out, *p, axis, begin);
    begin += p->shape[a];
  }
  return out;
}

template <class T>
Array<T> slice(const Array<T>& x, int axis, std::int64_t begin, std::int64_t length) {
  std::vector<std::int64_t> shape = x.shape;
  shape[static_cast<std::size_t>(axis)] = length;
  if (elements(shape) == 0) return zeros<T>(shape);
  const auto source = dynamic(x);
  return collect<T>(part(source, shape.size(), axis, begin, length));
}

template <class T>
Array<T> append(Array<T>& state, const Array<T>& rows, int axis, std::int64_t offset) {
  write(state, rows, axis, offset);
  return slice(state, axis, 0, offset + rows.shape[static_cast<std::size_t>(axis)]);
}

template <class T>
Array<T> append(Array<T>& state, const Array<T>& rows, int axis, const Array<T>& positions) {
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t batch = rows.shape[0], count = rows.shape[at], room = state.shape[at];
  const auto four = [&](const Array<T>& x) {
    std::array<std::int64_t, 4> shape{x.shape[0], 1, x.shape[at], 1};
    for (std::size_t i = 1; i < at; ++i) shape[1] *= x.shape[i];
    for (std::size_t i = at + 1; i < x.shape.size(); ++i) shape[3] *= x.shape[i];
    return shape;
  };
  const auto shape = four(rows);
  const auto from = shaped<4>(rows, shape);
  const auto which = shaped<2>(positions, {batch, count});
  auto to = shaped<4>(state, four(state));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto p = static_cast<std::int64_t>(which(b, i));
      if (p == -1) continue;
      if (p < 0 || p >= room)
        throw std::out_of_range("position " + std::to_string(p) + " lies outside the state; it has room for " +
                                std::to_string(room));
      for (std::int64_t o = 0; o < shape[1]; ++o)
        for (std::int64_t c = 0; c < shape[3]; ++c) to(b, o, p, c) = from(b, o, i, c);
    }
  }
  return state;
}

template Array<float> transpose(const Array<float>&, const std::vector<int>&);
template Array<double> transpose(const Array<double>&, const std::vector<int>&);
template Array<float> split_heads(const Array<float>&, std::int64_t);
template Array<double> split_heads(const Array<double>&, std::int64_t);
template Array<float> merge_heads(const Array<float>&);
template Array<double> merge_heads(const Array<double>&);
template Array<float> concatenate(const std::vector<const Array<float>*>&, int);
template Array<double> concatenate(const std::vector<const Array<double>*>&, int);
template Array<float> slice(const Array<float>&, int, std::int64_t, std::int64_t);
template Array<double> slice(const Array<double>&, int, std::int64_t, std::int64_t);
template Array<float> append(Array<float>&, const Array<float>&, int, std::int64_t);
template Array<double> append(Array<double>&, const Array<double>&, int, std::int64_t);
template Array<float> append(Array<float>&, const Array<float>&, int, const Array<float>&);
template Array<double> append(Array<double>&, const Array<double>&, int, const Array<double>&);

}  // namespace treadle::reference

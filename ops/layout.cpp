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

}  // namespace treadle::reference

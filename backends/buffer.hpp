#pragma once
// What a plan's tensors are before they have addresses: buffers, and views whose strides follow the buffer's.
//
// A caller may hand in any strides at any run. So a view does not hold strides: each of its dims names an axis of its
// buffer and a multiple of that axis's stride. Transposes, slices and head splits are such views and cost nothing; what
// a kernel needs beyond that (a unit stride, two axes that lie end to end) becomes a condition of the buffer. A
// caller's tensor that does not fulfil the conditions goes through a dense copy, which always does.

#include <treadle/graph/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace treadle::plan {

enum class Place : std::uint8_t {
  arena,     ///< lives for some steps
  input,     ///< the caller's
  output,    ///< the caller's
  constant,  ///< a parameter, or made from parameters
  state,
};

/// stride(axis_a) · multiple_a == stride(axis_b) · multiple_b; axis −1 has stride 1.
struct Condition {
  int axis_a = -1;
  std::int64_t multiple_a = 1;
  int axis_b = -1;
  std::int64_t multiple_b = 1;
  bool operator==(const Condition&) const = default;
};

struct Buffer {
  Place place = Place::arena;
  TensorView view;  ///< shape and strides; `data` once it is known
  std::size_t bytes = 0;
  std::int64_t first = -1, last = -1;  ///< steps that use it
  std::size_t offset = 0;              ///< in the arena
  int slot = -1;                       ///< which input, output or state
  std::string key;                     ///< of a constant: names its packed form
  std::vector<Condition> conditions;   ///< of inputs and outputs

  bool callers() const { return place == Place::input || place == Place::output; }
  bool fulfils(const TensorView& given) const {
    const auto stride = [&](int axis) {
      return axis < 0 ? std::int64_t{1} : given.strides[static_cast<std::size_t>(axis)];
    };
    for (const Condition& c : conditions)
      if (stride(c.axis_a) * c.multiple_a != stride(c.axis_b) * c.multiple_b) return false;
    return true;
  }
};

struct ViewDim {
  std::int64_t size = 1;
  int axis = -1;              ///< of the buffer; −1: the stride is `multiple` itself
  std::int64_t multiple = 0;  ///< stride = multiple × the axis's stride
  bool operator==(const ViewDim&) const = default;
};

struct View {
  int buffer = -1;
  DType dtype = DType::f32;
  std::vector<ViewDim> dims;
  std::array<std::int64_t, max_rank> origin{};  ///< of the first element, per axis of the buffer

  bool operator==(const View&) const = default;
  int rank() const { return static_cast<int>(dims.size()); }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (const ViewDim& d : dims) n *= d.size;
    return n;
  }
  std::vector<std::int64_t> shape() const {
    std::vector<std::int64_t> s;
    for (const ViewDim& d : dims) s.push_back(d.size);
    return s;
  }
};

/// The whole buffer.
inline View whole(const Buffer& b, int index) {
  View v;
  v.buffer = index;
  v.dtype = b.view.dtype;
  for (int i = 0; i < b.view.rank; ++i) v.dims.push_back({b.view.shape[static_cast<std::size_t>(i)], i, 1});
  return v;
}

inline std::int64_t stride(const Buffer& b, const ViewDim& d) {
  return d.axis < 0 ? d.multiple : d.multiple * b.view.strides[static_cast<std::size_t>(d.axis)];
}

/// The strided tensor behind a view, with the buffer's present address and strides.
inline TensorView resolve(const Buffer& b, const View& v) {
  TensorView t;
  t.dtype = v.dtype;
  t.rank = v.rank();
  std::int64_t at = 0;
  for (int i = 0; i < b.view.rank; ++i)
    at += v.origin[static_cast<std::size_t>(i)] * b.view.strides[static_cast<std::size_t>(i)];
  for (std::size_t i = 0; i < v.dims.size(); ++i) {
    t.shape[i] = v.dims[i].size;
    t.strides[i] = stride(b, v.dims[i]);
  }
  if (b.view.data != nullptr) t.data = b.view.as<std::byte>() + at * static_cast<std::int64_t>(size_of(v.dtype));
  return t;
}

/// Whether the last dim has unit stride; of a caller's buffer that becomes a condition.
inline bool require_unit(Buffer& b, View& v, bool record = true) {
  if (v.dims.empty()) return true;
  ViewDim& d = v.dims.back();
  if (d.size == 1) d = {1, -1, 1};
  if (stride(b, d) != 1) return false;
  if (record && b.callers() && d.axis >= 0) b.conditions.push_back({d.axis, d.multiple, -1, 1});
  return true;
}

inline bool can_merge(const Buffer& b, const View& v, std::size_t i) {
  const ViewDim &outer = v.dims[i], &inner = v.dims[i + 1];
  return outer.size == 1 || inner.size == 1 || stride(b, outer) == stride(b, inner) * inner.size;
}

/// Joins dims i and i + 1, which can_merge. Of a caller's buffer that becomes a condition, unless this is only a trial.
inline void merge(Buffer& b, View& v, std::size_t i, bool record = true) {
  const ViewDim outer = v.dims[i], inner = v.dims[i + 1];
  ViewDim joined = inner;
  joined.size = outer.size * inner.size;
  if (inner.size == 1) {
    joined.axis = outer.axis;
    joined.multiple = outer.multiple;
  } else if (record && outer.size != 1 && b.callers() && outer.axis != inner.axis) {
    b.conditions.push_back({outer.axis, outer.multiple, inner.axis, inner.multiple * inner.size});
  }
  v.dims[i] = joined;
  v.dims.erase(v.dims.begin() + static_cast<std::ptrdiff_t>(i) + 1);
}

/// Whether two views show the same elements in the same order.
inline bool same_place(const View& a, const View& b) {
  if (a.buffer != b.buffer || a.dims.size() != b.dims.size() || a.origin != b.origin) return false;
  for (std::size_t i = 0; i < a.dims.size(); ++i)
    if (a.dims[i].size != b.dims[i].size || (a.dims[i].size > 1 && !(a.dims[i] == b.dims[i]))) return false;
  return true;
}

/// The part [begin, begin + length) along dim `i`.
inline View sliced(View v, std::size_t i, std::int64_t begin, std::int64_t length) {
  ViewDim& d = v.dims[i];
  if (d.axis >= 0) v.origin[static_cast<std::size_t>(d.axis)] += begin * d.multiple;
  d.size = length;
  return v;
}
/// Element `index` of dim `i`, which goes away.
inline View picked(View v, std::size_t i, std::int64_t index) {
  v = sliced(std::move(v), i, index, 1);
  v.dims.erase(v.dims.begin() + static_cast<std::ptrdiff_t>(i));
  return v;
}
/// Dim `i` as two: [outer, size / outer].
inline View divided(View v, std::size_t i, std::int64_t outer) {
  const std::int64_t inner = outer == 0 ? 0 : v.dims[i].size / outer;
  const ViewDim d = v.dims[i];
  v.dims[i] = {outer, d.axis, d.multiple * inner};
  v.dims.insert(v.dims.begin() + static_cast<std::ptrdiff_t>(i) + 1, ViewDim{inner, d.axis, d.multiple});
  return v;
}
/// Broadcast from the right to `shape`.
inline View expanded(View v, std::span<const std::int64_t> shape) {
  while (v.dims.size() < shape.size()) v.dims.insert(v.dims.begin(), ViewDim{1, -1, 0});
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (v.dims[i].size == 1 && shape[i] != 1) v.dims[i] = {shape[i], -1, 0};
  return v;
}
inline View permuted(const View& v, std::span<const int> perm) {
  View r = v;
  for (std::size_t i = 0; i < perm.size(); ++i) r.dims[i] = v.dims[static_cast<std::size_t>(perm[i])];
  return r;
}

}  // namespace treadle::plan

#pragma once
// A view in another shape, if its strides allow that.

#include <treadle/backends/buffer.hpp>

#include <optional>

namespace treadle::plan {

/// The elements of `v` in row-major order in `shape`, which holds as many; none if dims would have to be joined that do
/// not lie end to end. Dims are taken in the smallest groups of equal product, joined and divided again. What was
/// joined becomes a condition of a caller's buffer.
inline std::optional<View> reshaped(Buffer& b, const View& v, std::span<const std::int64_t> shape, bool record = true) {
  View r = v;
  r.dims.clear();
  if (v.size() == 0) {  // nothing will be read or written: any strides
    for (const std::int64_t d : shape) r.dims.push_back({d, -1, 0});
    if (!r.dims.empty()) r.dims.back().multiple = 1;
    return r;
  }
  std::size_t i = 0, o = 0;
  while (i < v.dims.size() || o < shape.size()) {
    View group = v;
    group.dims.clear();
    const std::size_t first = o;
    std::int64_t have = 1, want = 1;
    const auto take = [&] {
      have *= v.dims[i].size;
      if (v.dims[i].size != 1) group.dims.push_back(v.dims[i]);
      ++i;
    };
    if (i < v.dims.size()) take();
    if (o < shape.size()) want *= shape[o++];
    while (have != want) {
      if (have < want)
        take();
      else
        want *= shape[o++];
    }
    while (group.dims.size() > 1) {
      if (!can_merge(b, group, 0)) return std::nullopt;
      merge(b, group, 0, record);
    }
    ViewDim joined = group.dims.empty() ? ViewDim{1, -1, 1} : group.dims[0];
    std::vector<ViewDim> parts;
    for (std::size_t k = o; k-- > first;) {
      parts.insert(parts.begin(), {shape[k], joined.axis, joined.multiple});
      joined.multiple *= shape[k];
    }
    r.dims.insert(r.dims.end(), parts.begin(), parts.end());
  }
  return r;
}

}  // namespace treadle::plan

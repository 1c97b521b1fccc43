// Learned, sinusoidal and rotary positions.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>
#include <treadle/ops/rotary.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace treadle::plan {

void Planner::positions(std::int32_t n) {
  const std::int64_t offset = sizes_.attribute(n, key::offset), length = sizes_.attribute(n, key::length);
  if (g_.nodes[n].op == op::positions) {
    const View table = in(n, 0);
    if (offset < 0 || checked_add(offset, length) > table.dims[0].size)
      fail(n, "positions [" + std::to_string(offset) + ", " + std::to_string(offset + length) +
                  ") leave the table, which has " + std::to_string(table.dims[0].size) + " rows");
    slot({n, 0}) = {sliced(table, 0, offset, length), -1};
    return;
  }
  // PE(p, 2i) = sin(p / base^(2i/width)), PE(p, 2i+1) = cos(…) (Vaswani et al. 2017, §3.5), made once per binding.
  const std::vector<std::int64_t> shape = sizes_(g_.shape({n, 0}));
  const double base = g_.get_number(n, key::base, 10000);
  const int b = add_buffer(Place::constant, f32, shape);
  const std::int64_t width = shape[1];
  fills_.emplace_back(b, [=](float* to) {
    for (std::int64_t p = 0; p < length; ++p) {
      for (std::int64_t c = 0; c < width; ++c) {
        const double angle = static_cast<double>(offset + p) /
                             std::pow(base, static_cast<double>(c - c % 2) / static_cast<double>(width));
        to[p * width + c] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  });
  slot({n, 0}) = {whole(plan_.buffers[static_cast<std::size_t>(b)], b), -1};
}

/// Cosines and sines of every row's angles [batch or 1, length, 2·rotary_dim]. Without given positions they are made at
/// bind; with, by a step.
View Planner::rotary_table(std::int32_t n) {
  const std::vector<std::int64_t> shape = sizes_(g_.shape({n, 0}));
  kernel::RotaryTable t;
  const RotaryAngles angles = rotary_angles(g_, n, sizes_.attribute(n, key::length));
  t.offset = sizes_.attribute(n, key::offset);
  t.rotary_dim = g_.get_integer(n, key::rotary_dim);
  t.interleaved = static_cast<rope_layout>(g_.get_integer(n, key::layout)) == rope_layout::interleaved;
  const std::int64_t width = 2 * t.rotary_dim, length = shape[2];
  std::string key;
  const auto part = [&](auto x) { key += std::to_string(x) + ","; };
  part(t.offset);
  part(t.rotary_dim);
  part(static_cast<int>(t.interleaved));
  part(static_cast<int>(angles.scaling));
  part(angles.original_length);
  part(angles.length);
  for (const double x : {angles.base, angles.factor, angles.low, angles.high, angles.magnitude})
    part(std::bit_cast<std::int64_t>(x));
  const RotaryFrequencies frequencies = rotary_frequencies(angles);
  t.magnitude = frequencies.magnitude;
  const auto keep_frequencies = [&] {
    plan_.owned.push_back(plan::allocate(frequencies.values.size() * sizeof(double)));
    auto* kept = static_cast<double*>(plan_.owned.back().get());
    std::copy(frequencies.values.begin(), frequencies.values.end(), kept);
    t.frequencies = kept;
  };
  const bool given = g_.get_integer(n, key::has_positions) != 0;
  if (!given) {
    part(length);
    if (const auto old = rotary_tables_.find(key); old != rotary_tables_.end()) return old->second;
    keep_frequencies();
    const int b = add_buffer(Place::constant, f32, {1, length, width});
    fills_.emplace_back(b, [t, length, width](float* to) {
      for (std::int64_t p = 0; p < length; ++p)
        kernel::rotary_row(t, static_cast<double>(t.offset + p), to + p * width);
    });
    return rotary_tables_[key] = whole(plan_.buffers[static_cast<std::size_t>(b)], b);
  }
  const View positions = in(n, 1);
  if (positions.dtype != i32 && positions.dtype != i64)
    fail(n, "the positions are " + std::string(name(positions.dtype)) + "; i32 or i64 is right");
  const bool lasting = buffer(positions).place == Place::input;  // other memory may hold something else by then
  if (lasting) {
    key += signature(positions) + std::to_string(positions.buffer);
    if (const auto old = rotary_tables_.find(key); old != rotary_tables_.end()) return old->second;
  }
  keep_frequencies();
  const View ids = flat(n, positions);
  const View table = fresh(f32, {positions.dims.size() == 2 ? shape[0] : 1, length, width});
  auto& a = step(n, kernel::rotary_table, 20.0 * static_cast<double>(table.size()));
  a = t;
  operand(a.positions, ids);
  operand(a.out, collapsed(table), true);
  if (lasting) rotary_tables_[key] = table;
  return table;
}

void Planner::rope(std::int32_t n) {
  const View x = unit(n, in(n, 0));
  require_f32(n, x, "x");
  const std::int64_t rotary = g_.get_integer(n, key::rotary_dim);
  const View table = expanded(rotary_table(n), std::vector<std::int64_t>{x.dims[0].size, x.dims[2].size, 2 * rotary});
  const View out = allocate({n, 0}, Need::unit);
  auto& a =
      step(n, kernels_.rope,
           3.0 * static_cast<double>(x.dims[0].size * x.dims[1].size * x.dims[2].size) * static_cast<double>(rotary));
  a.rotary_dim = rotary;
  a.interleaved = static_cast<rope_layout>(g_.get_integer(n, key::layout)) == rope_layout::interleaved;
  operand(a.x, x);
  operand(a.table, table);
  operand(a.out, out, true);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

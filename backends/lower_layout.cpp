// Ops that move or choose elements to views and steps: reshape, gather, constant, dropout.

#include <treadle/backends/planner.hpp>
#include <treadle/backends/reshaped.hpp>

#include <bit>

namespace treadle::plan {

void Planner::reshape(std::int32_t n) {
  View v = in(n, 0);
  const std::vector<std::int64_t> shape = sizes_(g_.shape({n, 0}));
  std::optional<View> seen = reshaped(buffer(v), v, shape);
  if (!seen && constant(v) && v.dtype == f32) {
    v = dense(n, v);
    seen = reshaped(buffer(v), v, shape);
  }
  if (!seen) {
    // The copy is written where the result is wanted, if that can be seen in the input's shape.
    View to = allocate({n, 0}, Need::any);
    std::optional<View> target = reshaped(buffer(to), to, v.shape());
    if (!target) {
      to = fresh(v.dtype, shape);
      target = reshaped(buffer(to), to, v.shape());
    }
    copy(n, v, *target);
    seen = to;
  }
  slot({n, 0}) = {*seen, -1};
}

/// The view in a shape of fewer dims, with a unit stride on the last; none if its strides do not allow that.
std::optional<View> Planner::as_rows(const View& v, const std::vector<std::int64_t>& shape) {
  std::optional<View> trial = reshaped(buffer(v), v, shape, false);
  if (!trial || !require_unit(buffer(*trial), *trial, false)) return std::nullopt;
  std::optional<View> r = reshaped(buffer(v), v, shape);
  require_unit(buffer(*r), *r);
  return r;
}

void Planner::gather(std::int32_t n) {
  const View x = in(n, 0), ids = in(n, 1);
  const auto axis = static_cast<std::size_t>(g_.get_integer(n, key::axis)),
             shared = static_cast<std::size_t>(g_.get_integer(n, key::batch_dims));
  if (ids.dtype != i32 && ids.dtype != i64)
    fail(n, "the ids are " + std::string(name(ids.dtype)) + "; i32 or i64 is right");
  const auto product = [](const View& v, std::size_t first, std::size_t last) {
    std::int64_t p = 1;
    for (std::size_t i = first; i < last; ++i) p *= v.dims[i].size;
    return p;
  };
  const std::int64_t batch = product(x, 0, shared), outer = product(x, shared, axis), rows = x.dims[axis].size,
                     inner = product(x, axis + 1, x.dims.size()), count = product(ids, shared, ids.dims.size());
  const auto either = [&](const View& v, const std::vector<std::int64_t>& shape) {
    const std::optional<View> seen = as_rows(v, shape);
    return seen ? *seen : *as_rows(dense(n, v), shape);
  };
  const View from = either(x, {batch, outer, rows, inner}), which = either(ids, {batch, count});
  View out = allocate({n, 0}, Need::any);
  std::optional<View> to = as_rows(out, {batch, outer, count, inner});
  if (!to) {
    out = fresh(x.dtype, out.shape());
    to = as_rows(out, {batch, outer, count, inner});
  }
  auto& a = step(n, kernel::gather);
  operand(a.x, from);
  operand(a.ids, which);
  operand(a.out, *to, true);
  plan_.steps.back().bytes -= static_cast<double>(from.size() - out.size()) * static_cast<double>(size_of(x.dtype));
  a.bad = &plan_.bad.emplace_back(0);
  plan_.bad_nodes.push_back(n);
  slot({n, 0}) = {out, -1};
}

/// As gather, the other way round: into the state, whose memory its view shows.
void Planner::append_at_positions(std::int32_t n) {
  const View state = in(n, 0), rows = in(n, 1), positions = in(n, 2);
  const auto axis = static_cast<std::size_t>(g_.get_integer(n, key::axis));
  if (positions.dtype != i32 && positions.dtype != i64)
    fail(n, "the positions are " + std::string(name(positions.dtype)) + "; i32 or i64 is right");
  const auto four = [&](const View& v) {
    std::vector<std::int64_t> shape{v.dims[0].size, 1, v.dims[axis].size, 1};
    for (std::size_t i = 1; i < axis; ++i) shape[1] *= v.dims[i].size;
    for (std::size_t i = axis + 1; i < v.dims.size(); ++i) shape[3] *= v.dims[i].size;
    return shape;
  };
  const std::optional<View> to = as_rows(state, four(state));
  if (!to) fail(n, "the state is not dense");
  const std::optional<View> seen = as_rows(rows, four(rows));
  const View from = seen ? *seen : *as_rows(dense(n, rows), four(rows)), which = this->rows(n, positions);
  auto& a = step(n, kernel::scatter);
  operand(a.rows, from);
  operand(a.positions, which);
  operand(a.state, *to, true);
  plan_.steps.back().bytes -= static_cast<double>(to->size() - from.size()) * static_cast<double>(size_of(rows.dtype));
  a.bad = &plan_.bad.emplace_back(0);
  plan_.bad_nodes.push_back(n);
  slot({n, 0}) = {state, -1};
}

/// One number, seen as many.
View Planner::filled(double value, DType dtype, const std::vector<std::int64_t>& shape) {
  const std::string key =
      "full(" + std::to_string(std::bit_cast<std::uint64_t>(value)) + ", " + std::string(name(dtype)) + ")";
  View v = constant_buffer(key, constant_memory(key, dtype, {1}, [=](std::int64_t) { return value; }));
  v.dims.clear();
  for (const std::int64_t d : shape) v.dims.push_back({d, -1, 0});
  return v;
}

void Planner::constant_node(std::int32_t n) {
  const DType dtype = g_.info({n, 0}).dtype;
  const std::vector<std::int64_t> shape = sizes_(g_.shape({n, 0}));
  if (g_.find(n, key::data) == nullptr) {
    slot({n, 0}) = {filled(g_.get_number(n, key::value), dtype, shape), -1};
    return;
  }
  const std::string key = "constant(" + std::to_string(n) + ")";
  const auto element = [&](std::int64_t i) { return g_.constant_element(n, i); };
  slot({n, 0}) = {constant_buffer(key, constant_memory(key, dtype, shape, element)), -1};
}

void Planner::dropout(std::int32_t n) {
  View x = in(n, 0), keep = in(n, 1);
  require_f32(n, x, "x");
  if (keep.dtype != boolean) fail(n, "the pattern is " + std::string(name(keep.dtype)) + "; bool is right, true keeps");
  const double p = g_.get_number(n, key::p);
  if (p >= 1) {
    slot({n, 0}) = {filled(0, f32, x.shape()), -1};
    return;
  }
  const View out = allocate({n, 0}, x.dims.size() > 4 ? Need::rows : Need::any);
  View to = out;
  keep = expanded(keep, x.shape());
  to_rank_4(n, {&keep, &x, &to}, 0);
  auto& a = step(n, kernel::select, static_cast<double>(out.size()));
  a.factor = static_cast<float>(1 / (1 - p));
  operand(a.keep, keep);
  operand(a.x, x);
  operand(a.out, to, true);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

// Mask nodes: virtual until somebody needs their values; and the tables that traced functions look up.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>

#include <algorithm>
#include <limits>

namespace treadle::plan {

/// Names of the tables in order of first appearance: depth first, operands from left to right, as mask nodes list them.
std::vector<std::string> Planner::table_names(int root) const {
  std::vector<std::string> names;
  std::vector<char> seen(g_.scalars.nodes.size(), 0);
  std::vector<int> stack{root};
  while (!stack.empty()) {
    const int id = stack.back();
    stack.pop_back();
    if (id < 0 || seen[static_cast<std::size_t>(id)] != 0) continue;
    seen[static_cast<std::size_t>(id)] = 1;
    const scalar::Node& x = g_.scalars[id];
    if (scalar::reads_table(x.op)) {
      const std::string table(g_.scalars.name(x));
      if (std::find(names.begin(), names.end(), table) == names.end()) names.push_back(table);
    }
    stack.insert(stack.end(), {x.c, x.b, x.a});
  }
  return names;
}

bool Planner::depends_on_iteration(int root) const {
  std::vector<char> seen(g_.scalars.nodes.size(), 0);
  std::vector<int> stack{root};
  while (!stack.empty()) {
    const int id = stack.back();
    stack.pop_back();
    if (id < 0 || seen[static_cast<std::size_t>(id)] != 0) continue;
    seen[static_cast<std::size_t>(id)] = 1;
    const scalar::Node& x = g_.scalars[id];
    if (x.op == scalar::Op::iteration) return true;
    stack.insert(stack.end(), {x.c, x.b, x.a});
  }
  return false;
}

/// The tables of a function: the node's inputs in order where they are listed, otherwise the graph inputs and
/// parameters of these names.
std::vector<Lookup> Planner::tables(std::int32_t n, int root, std::span<const Value> inputs) {
  std::vector<Lookup> found;
  const std::vector<std::string> names = table_names(root);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const View* view = nullptr;
    if (inputs.size() == names.size()) {
      view = &settled(slot(inputs[i]));
    } else {
      for (const std::int32_t m : nodes_of_[0])
        if ((g_.nodes[m].op == op::input || g_.nodes[m].op == op::parameter) && g_.leaf(m) == names[i])
          view = &settled(slot({m, 0}));
    }
    if (view == nullptr || view->buffer < 0)
      fail(n, "it looks up table '" + names[i] + "', but no input of the model has that name");
    View table = *view;
    if (table.dtype == i64 && !table.dims.empty()) {  // lookups read i32
      const View ids = rows(n, table);
      table = fresh(i32, table.shape());
      auto& a = step(n, kernel::narrow, static_cast<double>(table.size()));
      operand(a.x, ids);
      operand(a.out, collapsed(table), true);
    }
    found.push_back({names[i], table});
  }
  return found;
}

void Planner::mask(std::int32_t n) {
  VirtualMask m;
  m.node = n;
  m.shape = sizes_(g_.shape({n, 0}));
  std::span<const Value> inputs = g_.inputs(n);
  if (g_.get_integer(n, key::has_tensor) != 0) {
    m.dense = in(n, 0);
    if (m.dense.dtype != boolean)
      fail(n, "its tensor is " + std::string(name(m.dense.dtype)) + "; bool is right, true keeps");
    while (m.dense.dims.size() < 4) m.dense.dims.insert(m.dense.dims.begin(), ViewDim{1, -1, 0});
    inputs = inputs.subspan(1);
  }
  if (const Attribute* e = g_.find(n, key::expression)) {
    m.root = static_cast<int>(e->integer);
    m.tables = tables(n, m.root, inputs);
    if (!iterations_.empty() && depends_on_iteration(m.root)) m.iteration = iterations_.back();
  }
  slot({n, 0}) = {View{}, static_cast<int>(virtual_masks_.size())};
  virtual_masks_.push_back(std::move(m));
}

/// Tiles of a mask over scores [batch, heads, q_len, k_len]; layers with the same mask share them.
int Planner::use_mask(std::int32_t n, const Slot& s, const std::vector<std::int64_t>& shape) {
  MaskUse use;
  use.node = n;
  use.extents = {shape[0], shape[1], shape[2], shape[3], 0};
  if (s.mask >= 0) {
    const VirtualMask& m = virtual_masks_[static_cast<std::size_t>(s.mask)];
    use.root = m.root;
    use.tables = m.tables;
    use.dense = m.dense;
    use.extents.iteration = m.iteration;
    use.node = m.node;
    if (m.shape[2] != shape[2] || m.shape[3] != shape[3])
      fail(n, "its mask is over " + shape_text(std::vector{m.shape[2], m.shape[3]}) + "; the scores are " +
                  shape_text(std::vector{shape[2], shape[3]}));
  } else {
    use.dense = s.view;
    if (use.dense.dtype != boolean)
      fail(n, "its mask is " + std::string(name(use.dense.dtype)) + "; bool is right, true keeps");
    while (use.dense.dims.size() < 4) use.dense.dims.insert(use.dense.dims.begin(), ViewDim{1, -1, 0});
  }
  for (std::size_t i = 0; i < plan_.masks.size(); ++i)
    if (plan_.masks[i] == use) return static_cast<int>(i);
  plan_.masks.push_back(std::move(use));
  return static_cast<int>(plan_.masks.size()) - 1;
}

/// The step just added reads this mask (−1: none), and so the tables and the tensor behind it.
void Planner::reads_mask(int which) {
  plan_.steps.back().mask = which;
  if (which < 0) return;
  const MaskUse& use = plan_.masks[static_cast<std::size_t>(which)];
  if (use.dense.buffer >= 0) keep_alive(use.dense);
  for (const Lookup& table : use.tables) keep_alive(table.view);
}
void Planner::reads_score(int which) {
  plan_.steps.back().score = which;
  if (which < 0) return;
  for (const Lookup& table : plan_.scores[static_cast<std::size_t>(which)].tables) keep_alive(table.view);
}

View Planner::mask_values(std::int32_t n, int virtual_mask, std::vector<std::int64_t> shape) {
  VirtualMask& m = virtual_masks_[static_cast<std::size_t>(virtual_mask)];
  if (m.root < 0) return expanded(m.dense, shape);
  if (m.written.buffer >= 0 && m.written.shape() == shape) return m.written;
  const int which = use_mask(n, {View{}, virtual_mask}, shape);
  const View out = fresh(boolean, shape);
  auto& a = step(n, kernel::mask_values);
  operand(a.out, out, true);
  reads_mask(which);
  m.written = out;
  return out;
}

void Planner::select(std::int32_t n) {
  const bool to_bias = g_.nodes[n].op == op::mask_to_bias;
  const View out = allocate({n, 0}, Need::unit);
  const auto shape = out.shape();
  if (shape.size() > 4) fail(n, "the result has rank " + std::to_string(shape.size()) + "; at most 4 is possible");
  const Slot s = slot(g_.inputs(n)[0]);
  View keep;
  if (s.mask >= 0) {
    // A mask that depends on the batch element or the head is written out for those that x has.
    const VirtualMask& m = virtual_masks_[static_cast<std::size_t>(s.mask)];
    auto wanted = m.shape;
    const unsigned uses = m.root < 0 ? 0 : g_.scalars[m.root].uses;
    if ((uses & scalar::uses_b) != 0 && shape.size() == 4) wanted[0] = shape[0];
    if ((uses & scalar::uses_h) != 0 && shape.size() == 4) wanted[1] = shape[1];
    keep = mask_values(n, s.mask, wanted);
  } else {
    keep = s.view;
  }
  if (keep.dtype != boolean) fail(n, "its mask is " + std::string(name(keep.dtype)) + "; bool is right, true keeps");
  View x = to_bias ? View{} : in(n, 1);
  if (!to_bias) require_f32(n, x, "x");
  auto& a = step(n, kernel::select, static_cast<double>(out.size()));
  a.value = to_bias ? -std::numeric_limits<float>::infinity() : static_cast<float>(g_.get_number(n, key::value));
  const auto full = [&](View v) {
    v = expanded(v, shape);
    while (v.dims.size() < 4) v.dims.insert(v.dims.begin(), ViewDim{1, -1, 0});
    return v;
  };
  operand(a.keep, full(keep));
  if (!to_bias) operand(a.x, full(x));
  operand(a.out, full(out), true);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

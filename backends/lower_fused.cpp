// Nodes that passes make of several others, to steps.

#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>

namespace treadle::plan {

void Planner::add_norm(std::int32_t n) {
  const bool layer = g_.nodes[n].op == op::add_layer_norm;
  const bool has_weight = g_.get_integer(n, key::has_weight) != 0,
             has_bias = layer && g_.get_integer(n, key::has_bias) != 0;
  const View left = in(n, 0), right = in(n, 1);
  require_f32(n, left, "its first input");
  require_f32(n, right, "its second input");
  const View a = rows(n, left), b = rows(n, right);
  const View gamma = has_weight ? unit(n, in(n, 2)) : View{},
             beta = has_bias ? unit(n, in(n, has_weight ? 3 : 2)) : View{};
  const bool wants_sum = used_[index({n, 0})] != 0;
  const View sum = wants_sum ? allocate({n, 0}, Need::rows) : View{}, out = allocate({n, 1}, Need::rows);
  auto& s = step(n, layer ? kernels_.add_layer_norm : kernels_.add_rms_norm, 9.0 * static_cast<double>(out.size()));
  s.eps = static_cast<float>(g_.get_number(n, key::eps, 1e-5));
  operand(s.a, a);
  operand(s.b, b);
  if (has_weight) operand(s.gamma, gamma);
  if (has_bias) operand(s.beta, beta);
  if (wants_sum) operand(s.sum, collapsed(sum), true);
  operand(s.out, collapsed(out), true);
  slot({n, 0}) = {sum, -1};
  slot({n, 1}) = {out, -1};
}

void Planner::embedding_sum(std::int32_t n) {
  const std::int64_t normalise = g_.get_integer(n, key::normalise);
  const bool has_weight = g_.get_integer(n, key::has_weight) != 0, has_bias = g_.get_integer(n, key::has_bias) != 0;
  const View table = unit(n, in(n, 0)), ids = flat(n, in(n, 1)), added = rows(n, in(n, 2));
  require_f32(n, table, "the table");
  require_f32(n, added, "what is added");
  if (ids.dtype != i32 && ids.dtype != i64)
    fail(n, "the ids are " + std::string(name(ids.dtype)) + "; i32 or i64 is right");
  const View gamma = has_weight ? unit(n, in(n, 3)) : View{},
             beta = has_bias ? unit(n, in(n, has_weight ? 4 : 3)) : View{};
  const View out = allocate({n, 0}, Need::rows);
  auto& s = step(n, kernels_.embedding_sum, (normalise != 0 ? 9.0 : 1.0) * static_cast<double>(out.size()));
  s.factor = static_cast<float>(g_.get_number(n, key::factor, 1));
  s.norm = static_cast<kernel::Norm>(normalise);
  s.eps = static_cast<float>(g_.get_number(n, key::eps, 1e-5));
  operand(s.ids, ids);
  operand(s.table, table);
  operand(s.rows, added);
  if (has_weight) operand(s.gamma, gamma);
  if (has_bias) operand(s.beta, beta);
  operand(s.out, collapsed(out), true);
  plan_.steps.back().bytes -= static_cast<double>(table.size() - out.size()) * 4;
  s.bad = &plan_.bad.emplace_back(0);
  plan_.bad_nodes.push_back(n);
  slot({n, 0}) = {out, -1};
}

void Planner::gated_linear(std::int32_t n) {
  const View given = in(n, 0);
  require_f32(n, given, "x");
  const bool has_bias = g_.get_integer(n, key::has_bias) != 0;
  const View x = rows(n, given);
  kernel::PackedWeights weights[2];
  for (int i = 0; i < 2; ++i) {
    const Slot& w = slot(g_.inputs(n)[static_cast<std::size_t>(1 + i)]);
    if (w.mask >= 0 || !constant(w.view))
      fail(n, "a weight is computed in the run; gated_linear packs its weights at bind, so write two linear nodes");
    require_f32(n, w.view, "a weight");
    weights[i] = packed(w.view, w.factor);
  }
  const View gate_bias = has_bias ? unit(n, in(n, 3)) : View{}, up_bias = has_bias ? unit(n, in(n, 4)) : View{};
  const View out = allocate({n, 0}, Need::rows);
  const auto k = static_cast<double>(weights[0].k);
  auto& s = step(n, kernels_.gated_linear, (4.0 * k + 1.0) * static_cast<double>(out.size()));
  s.gate = weights[0];
  s.up = weights[1];
  s.activation = unary(static_cast<activation>(g_.get_integer(n, key::function)));
  operand(s.a, x);
  if (has_bias) operand(s.gate_bias, gate_bias);
  if (has_bias) operand(s.up_bias, up_bias);
  operand(s.out, collapsed(out), true);
  plan_.steps.back().bytes += static_cast<double>(2 * weights[0].k * weights[0].n) * 4;
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

// Mixture of experts: route, group the tokens by expert, products over the groups, mix.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>

#include <limits>

namespace treadle::plan {

/// One product of each expert over its rows; `input` is the stack of their weights.
View Planner::experts(std::int32_t n, int input, const View& a, const View* source, const View& starts,
                      activation function) {
  const View stack = in(n, input);
  require_f32(n, stack, "a weight of the experts");
  if (!constant(stack))
    fail(n, "the experts' weights are computed in the run; backend '" + std::string(backend_) +
                "' packs them at bind, so they must be parameters");
  auto& weights = plan_.expert_weights.emplace_back();
  const std::int64_t count = stack.dims[0].size;
  for (std::int64_t e = 0; e < count; ++e) weights.push_back(packed(picked(stack, 0, e), 1));
  const std::int64_t row_count = source != nullptr ? source->dims[0].size : a.dims[0].size;
  const View out = fresh(f32, {row_count, stack.dims[1].size});
  auto& s =
      step(n, kernels_.expert_linear, 2.0 * static_cast<double>(out.size()) * static_cast<double>(stack.dims[2].size));
  s.weights = weights.data();
  s.experts = count;
  s.activation = unary(function);
  s.computed = &plan_.expert_rows.emplace_back(0);
  operand(s.a, a);
  if (source != nullptr) operand(s.source, *source);
  operand(s.starts, starts);
  operand(s.out, out, true);
  const std::int64_t touched = std::min(count, row_count);  // an expert that nobody chose is not read
  plan_.steps.back().bytes +=
      static_cast<double>(touched) * static_cast<double>(stack.size() / std::max<std::int64_t>(count, 1)) * 4;
  return out;
}

void Planner::moe(std::int32_t n) {
  const View given = in(n, 0), router = in(n, 1);
  require_f32(n, given, "x");
  require_f32(n, router, "the router's weight");
  if (!constant(router))
    fail(n, "the router's weight is computed in the run; backend '" + std::string(backend_) +
                "' packs it at bind, so it must be a parameter");
  const View x = rows(n, given);
  const View out = allocate({n, 0}, Need::rows);
  const std::int64_t tokens = x.dims[0].size, count = router.dims[0].size, top_k = g_.get_integer(n, key::top_k);
  const std::int64_t row_count = checked_multiply(tokens, top_k);
  if (row_count > std::numeric_limits<std::int32_t>::max())
    fail(n, std::to_string(row_count) + " rows for the experts; at most 2147483647 are possible");

  const View logits = fresh(f32, {tokens, count});
  {
    const kernel::PackedWeights w = packed(router, 1);
    auto& a = step(n, kernels_.linear, 2.0 * static_cast<double>(logits.size()) * static_cast<double>(w.k));
    a.w = w;
    operand(a.a, x);
    operand(a.out, logits, true);
  }
  const View chosen = fresh(i32, {tokens, top_k}), weights = fresh(f32, {tokens, top_k});
  {
    auto& a = step(n, kernel::choose_experts, 4.0 * static_cast<double>(logits.size()));
    a.renormalise = g_.get_integer(n, key::renormalise) != 0;
    operand(a.logits, logits);
    operand(a.experts, chosen, true);
    operand(a.weights, weights, true);
  }
  const View places = fresh(i32, {tokens, top_k}), source = fresh(i32, {row_count}), starts = fresh(i32, {count + 1});
  {
    auto& a = step(n, kernel::group_by_expert);
    operand(a.experts, chosen);
    operand(a.rows, places, true);
    operand(a.tokens, source, true);
    operand(a.starts, starts, true);
  }
  const auto function = static_cast<activation>(g_.get_integer(n, key::function));
  const bool gated = g_.get_integer(n, key::has_gate) != 0;
  View h = experts(n, 2, x, &source, starts, gated ? activation::none : function);
  if (gated) {
    const View gate = experts(n, 4, x, &source, starts, function);
    const View product = fresh(f32, h.shape());
    combine(n, gate, h, kernel::Binary::multiply, product);
    h = product;
  }
  const View y = experts(n, 3, h, nullptr, starts, activation::none);
  auto& a = step(n, kernels_.mix_experts, 2.0 * static_cast<double>(y.size()));
  operand(a.y, y);
  operand(a.rows, places);
  operand(a.weights, weights);
  operand(a.out, collapsed(out), true);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

// What goes with attention: probes of its weights, and biases by distance.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>

#include <algorithm>

namespace treadle::plan {

void Planner::attention_probe(std::int32_t n) {
  const View q = unit(n, in(n, 0)), k = unit(n, in(n, 1)), lse = in(n, 2);
  require_f32(n, q, "q");
  require_f32(n, k, "k");
  require_f32(n, lse, "the log-sum-exp");
  const ScoreInputs given = score_inputs(n, q, k);
  const auto what = static_cast<probe>(g_.get_integer(n, key::probe));
  const View out = allocate({n, 0}, Need::unit);
  const View largest = what == probe::top_k ? allocate({n, 1}, Need::unit) : View{};
  const double pairs = static_cast<double>(q.dims[0].size * q.dims[1].size) * static_cast<double>(q.dims[2].size) *
                       static_cast<double>(k.dims[2].size);
  auto& a = step(n, kernels_.attention_probe, 2.0 * pairs * static_cast<double>(q.dims[3].size));
  set_scores(n, a.scores, q, k, given);
  operand(a.scores.lse, lse);
  switch (what) {
    case probe::weights: operand(a.weights, out, true); break;
    case probe::entropy: operand(a.entropy, out, true); break;
    case probe::column_sums: operand(a.received, out, true); break;
    case probe::top_k:
      operand(a.indices, out, true);
      operand(a.largest, largest, true);
      slot({n, 1}) = {largest, -1};
  }
  slot({n, 0}) = {out, -1};
}

/// One number for each head and distance, [heads, q_len + k_len − 1]; the result is a view of it in which a step to the
/// next query is one number on and a step to the next key one number back.
void Planner::relative_bias(std::int32_t n) {
  const View table = in(n, 0);
  require_f32(n, table, "the table");
  const std::vector<std::int64_t> shape = sizes_(g_.shape({n, 0}));
  const std::int64_t q_len = shape[2], k_len = shape[3];
  const View line = fresh(f32, {shape[1], std::max<std::int64_t>(checked_add(q_len, k_len) - 1, 0)});
  auto& a = step(n, kernel::relative_bias);
  a.max_distance = g_.get_integer(n, key::max_distance);
  a.bidirectional = g_.get_integer(n, key::causal) == 0;
  a.last = k_len - 1 - (g_.get_integer(n, key::top_left) != 0 ? 0 : k_len - q_len);
  operand(a.table, table);
  operand(a.out, line, true);
  View out = line;
  out.dims = {{1, -1, 0}, line.dims[0], {q_len, 1, 1}, {k_len, 1, -1}};
  out.origin[1] = std::max<std::int64_t>(k_len - 1, 0);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

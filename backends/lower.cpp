// One node to views and steps.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>

#include <algorithm>

namespace treadle::plan {

void Planner::lower(std::int32_t n) {
  switch (g_.nodes[n].op) {
    case op::input: {
      const int b = add_buffer(Place::input, g_.info({n, 0}).dtype, sizes_(g_.shape({n, 0})));
      plan_.buffers[static_cast<std::size_t>(b)].slot = static_cast<int>(plan_.inputs.size());
      plan_.inputs.push_back(b);
      plan_.input_names.emplace_back(g_.leaf(n));
      slot({n, 0}) = {whole(plan_.buffers[static_cast<std::size_t>(b)], b), -1};
      return;
    }
    case op::parameter: slot({n, 0}) = {parameter(n), -1}; return;
    case op::state: {
      const int b = add_buffer(Place::state, g_.info({n, 0}).dtype, sizes_(g_.shape({n, 0})));
      Buffer& to = plan_.buffers[static_cast<std::size_t>(b)];
      to.slot = static_cast<int>(wanted_states_.size());
      wanted_states_.push_back({full_name(g_, n), to.view, nullptr, to.bytes});
      slot({n, 0}) = {whole(to, b), -1};
      return;
    }
    case op::constant: return constant_node(n);
    case op::region_input: return;  // set by repeat()
    case op::repeat: return repeat(n);
    case op::output: {
      const View from = in(n, 0);
      int which = 0;
      while (plan_.output_nodes[static_cast<std::size_t>(which)] != n) ++which;
      const int b = plan_.outputs[static_cast<std::size_t>(which)];
      const View to = whole(plan_.buffers[static_cast<std::size_t>(b)], b);
      if (!same_place(from, to)) copy(n, from, to);
      return;
    }
    case op::append: return append(n);
    case op::embedding: return embedding(n);
    case op::gather: return gather(n);
    case op::positions:
    case op::sinusoidal_positions: return positions(n);
    case op::concatenate: return concatenate(n);
    case op::slice:
    case op::transpose:
    case op::split_heads:
    case op::merge_heads: return view_op(n);
    case op::reshape: return reshape(n);
    case op::dropout: return dropout(n);
    case op::add: return combine(n, kernel::Binary::add);
    case op::multiply: return combine(n, kernel::Binary::multiply);
    case op::scale:
    case op::softcap:
    case op::activation: return elementwise(n);
    case op::linear: return linear(n);
    case op::matmul: return matmul(n);
    case op::softmax: return softmax(n, kernels_.softmax);
    case op::log_softmax: return softmax(n, kernels_.log_softmax);
    case op::logsumexp: return row_reduction(n, kernels_.logsumexp, 3);
    case op::argmax: return row_reduction(n, kernels_.argmax, 1);
    case op::argsort: return argsort(n);
    case op::top_k_mask: return top_k_mask(n);
    case op::cross_entropy: return cross_entropy(n);
    case op::pool: return pool(n);
    case op::mask: return mask(n);
    case op::mask_to_bias:
    case op::select: return select(n);
    case op::relative_bias: return relative_bias(n);
    case op::attention: return attention(n);
    case op::attention_probe: return attention_probe(n);
    case op::linear_attention: return linear_attention(n);
    case op::recurrent_attention: return recurrent_attention(n);
    case op::map: return map(n);
    case op::rope: return rope(n);
    case op::additive_scores: return additive_scores(n);
    case op::random_projection: return random_projection(n);
    case op::random_features: return random_features(n);
    case op::moe: return moe(n);
    case op::layer_norm:
    case op::rms_norm: return norm(n);
    case op::add_layer_norm:
    case op::add_rms_norm: return add_norm(n);
    case op::embedding_sum: return embedding_sum(n);
    case op::gated_linear: return gated_linear(n);
  }
  fail(n, "backend '" + std::string(backend_) + "' has no kernel for this op");
}

/// The view of input `i`; a mask that has no memory yet is written out.
View Planner::in(std::int32_t n, int i) {
  Slot& s = slot(g_.inputs(n)[static_cast<std::size_t>(i)]);
  if (s.mask >= 0) return mask_values(n, s.mask, virtual_masks_[static_cast<std::size_t>(s.mask)].shape);
  return settled(s);
}

void Planner::require_f32(std::int32_t n, const View& v, const char* what) const {
  if (v.dtype != f32)
    fail(n, std::string(what) + " is " + std::string(name(v.dtype)) + "; backend '" + std::string(backend_) +
                "' computes in f32");
}

void Planner::view_op(std::int32_t n) {
  View v = in(n, 0);
  slot({n, 0}) = {};
  View& out = slot({n, 0}).view;
  switch (g_.nodes[n].op) {
    case op::slice: {
      const auto axis = static_cast<std::size_t>(g_.get_integer(n, key::axis));
      const std::int64_t begin = sizes_.attribute(n, key::begin), length = sizes_.attribute(n, key::length),
                         have = v.dims[axis].size;
      if (begin < 0 || checked_add(begin, length) > have)
        fail(n, "the slice [" + std::to_string(begin) + ", " + std::to_string(begin + length) + ") leaves axis " +
                    std::to_string(axis) + ", which has " + std::to_string(have));
      out = sliced(v, axis, begin, length);
      return;
    }
    case op::transpose: {
      std::int64_t code = g_.get_integer(n, key::perm);
      std::vector<int> perm;
      for (std::size_t i = 0; i < v.dims.size(); ++i, code /= 8) perm.push_back(static_cast<int>(code % 8));
      out = permuted(v, perm);
      return;
    }
    case op::split_heads: {
      if (v.dims.size() + 1 > max_rank) fail(n, "the result would have rank " + std::to_string(v.dims.size() + 1));
      v = divided(v, v.dims.size() - 1, g_.get_integer(n, key::heads));
      std::swap(v.dims[v.dims.size() - 3], v.dims[v.dims.size() - 2]);
      out = v;
      return;
    }
    default: {  // merge_heads
      std::swap(v.dims[v.dims.size() - 3], v.dims[v.dims.size() - 2]);
      const std::size_t at = v.dims.size() - 2;
      if (!can_merge(buffer(v), v, at)) {
        if (constant(v)) {
          v = dense(n, v);
        } else {
          // The copy may be written where the result is wanted.
          const View to = allocate({n, 0}, Need::any);
          View split = divided(to, to.dims.size() - 1, v.dims[at].size);
          copy(n, v, split);
          out = to;
          return;
        }
      }
      merge(buffer(v), v, at);
      out = v;
    }
  }
}

void Planner::concatenate(std::int32_t n) {
  const auto axis = static_cast<std::size_t>(g_.get_integer(n, key::axis));
  std::vector<View> parts;
  bool fold = true;
  for (int i = 0; i < g_.nodes[n].inputs.count; ++i) {
    parts.push_back(in(n, i));
    fold = fold && constant(parts.back()) && parts.back().dtype == f32;
  }
  if (fold) {
    slot({n, 0}) = {folded_concatenation(n, parts, axis), -1};
    return;
  }
  const View out = allocate({n, 0}, Need::any);
  std::int64_t at = 0;
  for (const View& part : parts) {
    copy(n, part, sliced(out, axis, at, part.dims[axis].size));
    at += part.dims[axis].size;
  }
  slot({n, 0}) = {out, -1};
}

void Planner::append(std::int32_t n) {
  const View state = in(n, 0), rows = in(n, 1);
  if (buffer(state).place != Place::state) fail(n, "its first input is not a state; append writes in place");
  if (state.dtype != rows.dtype)
    fail(n, "the rows are " + std::string(name(rows.dtype)) + "; the state is " + std::string(name(state.dtype)));
  if (g_.inputs(n).size() == 3) return append_at_positions(n);
  const auto axis = static_cast<std::size_t>(g_.get_integer(n, key::axis));
  const std::int64_t offset = sizes_.attribute(n, key::offset), count = rows.dims[axis].size,
                     capacity = state.dims[axis].size;
  if (offset < 0 || checked_add(offset, count) > capacity)
    fail(n, "rows [" + std::to_string(offset) + ", " + std::to_string(offset + count) +
                ") do not fit into a state of " + std::to_string(capacity) + " rows");
  copy(n, rows, sliced(state, axis, offset, count));
  slot({n, 0}) = {sliced(state, axis, 0, offset + count), -1};
}

void Planner::embedding(std::int32_t n) {
  const View table = unit(n, in(n, 0));
  const View ids = flat(n, in(n, 1));
  require_f32(n, table, "the table");
  if (ids.dtype != i32 && ids.dtype != i64)
    fail(n, "the ids are " + std::string(name(ids.dtype)) + "; i32 or i64 is right");
  const View out = allocate({n, 0}, Need::rows);
  auto& a = step(n, kernels_.embedding);
  operand(a.ids, ids);
  operand(a.table, table);
  operand(a.out, collapsed(out), true);
  plan_.steps.back().bytes -= static_cast<double>(table.size() - out.size()) * 4;
  a.bad = &plan_.bad.emplace_back(0);
  plan_.bad_nodes.push_back(n);
  slot({n, 0}) = {out, -1};
}

View Planner::combine(std::int32_t n, const View& left, const View& right, kernel::Binary op, const View& out) {
  const auto shape = out.shape();
  View a = expanded(left, shape), b = expanded(right, shape), to = out;
  to_rank_4(n, {&a, &b, &to}, 1);
  require_unit(buffer(to), to);
  auto& arguments = step(n, kernels_.combine, static_cast<double>(out.size()));
  arguments.op = op;
  operand(arguments.a, a);
  operand(arguments.b, b);
  operand(arguments.out, to, true);
  return out;
}

void Planner::combine(std::int32_t n, kernel::Binary op) {
  const View a = in(n, 0), b = in(n, 1);
  require_f32(n, a, "its first input");
  require_f32(n, b, "its second input");
  const std::size_t rank = std::max(a.dims.size(), b.dims.size());
  slot({n, 0}) = {combine(n, a, b, op, allocate({n, 0}, rank > 4 ? Need::rows : Need::unit)), -1};
}

void Planner::elementwise(std::int32_t n) {
  if (g_.nodes[n].op == op::scale) {
    const Slot from = slot(g_.inputs(n)[0]);
    if (from.mask < 0 && from.view.dtype == f32 && constant(from.view)) {
      slot({n, 0}) = {from.view, -1, from.factor * static_cast<float>(g_.get_number(n, key::factor, 1))};
      return;
    }
  }
  const View given = in(n, 0);
  require_f32(n, given, "its input");
  const auto function = static_cast<activation>(g_.get_integer(n, key::function));
  const op o = g_.nodes[n].op;
  if (o == op::activation && function == activation::none) {
    slot({n, 0}) = {given, -1};
    return;
  }
  const View x = rows(n, given), out = allocate({n, 0}, Need::rows);
  auto& a = step(n, kernels_.elementwise, static_cast<double>(out.size()));
  a.op = o == op::scale ? kernel::Unary::scale : o == op::softcap ? kernel::Unary::softcap : unary(function);
  a.factor = static_cast<float>(g_.get_number(n, o == op::activation ? key::alpha : key::factor, 1));
  operand(a.x, x);
  operand(a.out, collapsed(out), true);
  slot({n, 0}) = {out, -1};
}

void Planner::linear(std::int32_t n) {
  const View given = in(n, 0);
  const Slot& weights = slot(g_.inputs(n)[1]);
  const float factor = weights.factor;
  const View weight = factor == 1 ? in(n, 1) : weights.view;
  int next = 2;
  View bias, residual;
  const bool has_bias = g_.get_integer(n, key::has_bias) != 0, has_residual = g_.get_integer(n, key::has_residual) != 0;
  if (has_bias) bias = unit(n, in(n, next++));
  if (has_residual) residual = in(n, next);
  require_f32(n, given, "x");
  require_f32(n, weight, "the weight");
  const View x = rows(n, given);
  if (!constant(weight))
    return linear_by_matmul(n, x, weight, has_bias ? &bias : nullptr, has_residual ? &residual : nullptr);
  const View from = has_residual ? rows(n, residual) : View{};
  const View out = allocate({n, 0}, Need::rows);
  const kernel::PackedWeights w = packed(weight, factor);
  auto& a = step(n, kernels_.linear, 2.0 * static_cast<double>(out.size()) * static_cast<double>(w.k));
  a.w = w;
  a.activation = unary(static_cast<activation>(g_.get_integer(n, key::function)));
  operand(a.a, x);
  if (has_bias) operand(a.bias, bias);
  if (has_residual) operand(a.residual, from);
  operand(a.out, collapsed(out), true);
  plan_.steps.back().bytes += static_cast<double>(w.k * w.n) * 4;
  slot({n, 0}) = {out, -1};
}

/// A weight that is computed in the run cannot be packed: product, bias, activation and residual as steps of their own.
void Planner::linear_by_matmul(std::int32_t n, const View& x, const View& weight, const View* bias,
                               const View* residual) {
  const auto function = static_cast<activation>(g_.get_integer(n, key::function));
  const View final_out = allocate({n, 0}, Need::rows);
  const auto shape = final_out.shape();
  int left = 1 + (bias != nullptr) + (function != activation::none) + (residual != nullptr);
  const auto target = [&] { return --left == 0 ? final_out : fresh(f32, shape); };
  View y = target();
  {
    View a = x, b = permuted(weight, std::vector<int>{1, 0}), to = collapsed(y);
    to_rank_4(n, {&a}, 2);
    to_rank_4(n, {&b}, 2);
    to_rank_4(n, {&to}, 2);
    auto& m = step(n, kernels_.matmul, 2.0 * static_cast<double>(y.size()) * static_cast<double>(weight.dims[1].size));
    operand(m.a, a);
    operand(m.b, b);
    operand(m.out, to, true);
  }
  if (bias != nullptr) {
    const View to = target();
    y = combine(n, collapsed(y), *bias, kernel::Binary::add, collapsed(to));
    y = to;
  }
  if (function != activation::none) {
    const View to = target();
    auto& a = step(n, kernels_.elementwise, static_cast<double>(to.size()));
    a.op = unary(function);
    operand(a.x, collapsed(y));
    operand(a.out, collapsed(to), true);
    y = to;
  }
  if (residual != nullptr) {
    const View to = target();
    combine(n, collapsed(y), rows(n, *residual), kernel::Binary::add, collapsed(to));
  }
  slot({n, 0}) = {final_out, -1};
}

void Planner::matmul(std::int32_t n) {
  View a = in(n, 0), b = in(n, 1);
  require_f32(n, a, "its first input");
  require_f32(n, b, "its second input");
  const std::size_t rank = std::max(a.dims.size(), b.dims.size());
  const View out = allocate({n, 0}, rank > 4 ? Need::rows : Need::unit);
  const auto shape = out.shape();
  std::vector<std::int64_t> left(shape.begin(), shape.end() - 2), right = left;
  left.push_back(a.dims[a.dims.size() - 2].size);
  left.push_back(a.dims.back().size);
  right.push_back(b.dims[b.dims.size() - 2].size);
  right.push_back(b.dims.back().size);
  a = expanded(a, left);
  b = expanded(b, right);
  View to = out;
  to_rank_4(n, {&a, &b, &to}, 2);
  require_unit(buffer(to), to);
  auto& m = step(n, kernels_.matmul, 2.0 * static_cast<double>(out.size()) * static_cast<double>(left.back()));
  operand(m.a, a);
  operand(m.b, b);
  operand(m.out, to, true);
  slot({n, 0}) = {out, -1};
}

void Planner::norm(std::int32_t n) {
  const bool layer = g_.nodes[n].op == op::layer_norm;
  const bool has_weight = g_.get_integer(n, key::has_weight) != 0,
             has_bias = layer && g_.get_integer(n, key::has_bias) != 0;
  const View given = in(n, 0);
  require_f32(n, given, "its input");
  const View x = rows(n, given);
  const View gamma = has_weight ? unit(n, in(n, 1)) : View{},
             beta = has_bias ? unit(n, in(n, has_weight ? 2 : 1)) : View{};
  const View out = allocate({n, 0}, Need::rows);
  const auto fill = [&](auto& a) {
    a.eps = static_cast<float>(g_.get_number(n, key::eps, 1e-5));
    operand(a.x, x);
    if (has_weight) operand(a.gamma, gamma);
    operand(a.out, collapsed(out), true);
  };
  const double flops = 8.0 * static_cast<double>(out.size());
  if (layer) {
    auto& a = step(n, kernels_.layer_norm, flops);
    fill(a);
    if (has_bias) operand(a.beta, beta);
  } else {
    fill(step(n, kernels_.rms_norm, flops));
  }
  slot({n, 0}) = {out, -1};
}

Planner::ScoreInputs Planner::score_inputs(std::int32_t n, const View& q, const View& k) {
  const std::vector<std::int64_t> scores{q.dims[0].size, q.dims[1].size, q.dims[2].size, k.dims[2].size};
  if (k.dims[1].size == 0 || scores[1] % k.dims[1].size != 0)
    fail(n, std::to_string(scores[1]) + " query heads and " + std::to_string(k.dims[1].size) +
                " key heads; the query heads must be a multiple of the key heads");
  ScoreInputs r;
  int next = 3;
  if (g_.get_integer(n, key::has_mask) != 0)
    r.mask = use_mask(n, slot(g_.inputs(n)[static_cast<std::size_t>(next++)]), scores);
  r.has_bias = g_.get_integer(n, key::has_bias) != 0;
  r.has_sink = g_.get_integer(n, key::has_sink) != 0;
  if (r.has_bias) r.bias = expanded(in(n, next++), scores);
  if (r.has_sink) r.sink = unit(n, in(n, next++));
  if (const Attribute* e = g_.find(n, key::expression)) {
    r.score = static_cast<int>(plan_.scores.size());
    const auto root = static_cast<int>(e->integer);
    ScoreUse use{
        root,
        {scores[0], scores[1], scores[2], scores[3], iterations_.empty() ? 0 : iterations_.back(), q.dims[3].size},
        {},
        n};
    use.tables = tables(n, root, g_.inputs(n).subspan(static_cast<std::size_t>(next)));
    plan_.scores.push_back(std::move(use));
  }
  return r;
}

void Planner::set_scores(std::int32_t n, kernel::Attention& a, const View& q, const View& k, const ScoreInputs& given) {
  a.scale = static_cast<float>(g_.get_number(n, key::scale, 1));
  operand(a.q, q);
  operand(a.k, k);
  if (given.has_bias) operand(a.bias, given.bias);
  if (given.has_sink) operand(a.sink, given.sink);
  reads_mask(given.mask);
  reads_score(given.score);
}

void Planner::attention(std::int32_t n) {
  const View q = unit(n, in(n, 0)), k = unit(n, in(n, 1)), v = unit(n, in(n, 2));
  require_f32(n, q, "q");
  require_f32(n, k, "k");
  require_f32(n, v, "v");
  const ScoreInputs given = score_inputs(n, q, k);
  const View out = allocate({n, 0}, Need::unit);
  const bool wants_lse = g_.nodes[n].outputs.count > 1 && used_[index({n, 1})] != 0;
  const View lse = wants_lse ? allocate({n, 1}, Need::unit) : View{};
  const double pairs = static_cast<double>(q.dims[0].size * q.dims[1].size) * static_cast<double>(q.dims[2].size) *
                       static_cast<double>(k.dims[2].size);
  // A strip of queries in the lanes would be mostly empty.
  const bool few = q.dims[2].size <= 4 && !given.has_bias && given.score < 0;
  auto& a = step(n, few ? kernels_.attention_few : kernels_.attention,
                 2.0 * pairs * static_cast<double>(q.dims[3].size + v.dims[3].size));
  set_scores(n, a, q, k, given);
  operand(a.v, v);
  const std::int64_t parts = few ? (k.dims[2].size + kernel::keys_of_a_part - 1) / kernel::keys_of_a_part : 1;
  if (parts > 1) {
    const View part = fresh(f32, {q.dims[0].size, q.dims[1].size, q.dims[2].size, parts, v.dims[3].size + 2});
    operand(a.parts, part, true);
    auto& join = step(n, kernels_.join_attention, 2.0 * static_cast<double>(part.size()));
    operand(join.parts, part);
    operand(join.out, out, true);
    if (wants_lse) operand(join.lse, lse, true);
    if (given.has_sink) operand(join.sink, given.sink);
  } else {
    operand(a.out, out, true);
    if (wants_lse) operand(a.lse, lse, true);
  }
  slot({n, 0}) = {out, -1};
  if (g_.nodes[n].outputs.count > 1) slot({n, 1}) = {wants_lse ? lse : View{}, -1};
}

}  // namespace treadle::plan

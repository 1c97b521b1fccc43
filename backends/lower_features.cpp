// Linear attention and what goes before it; additive scores.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/planner.hpp>
#include <treadle/ops/reference.hpp>

#include <cmath>

namespace treadle::plan {

/// Which form of linear attention costs fewer multiplications for these lengths. All give the same up to rounding. A
/// state and exponents, which are kept relative to the keys so far, need one with a state: in chunks, or token by
/// token, where a multiplication costs about four times as much (it loads and stores its sum) but no chunk is filled
/// up.
const kernel::Kernel<kernel::LinearAttention>& Planner::form_of(const View& q, const View& k, const View& v,
                                                                bool causal, bool with_state) const {
  const auto queries = static_cast<double>(q.dims[2].size), keys = static_cast<double>(k.dims[2].size),
             dim = static_cast<double>(q.dims[3].size), values = static_cast<double>(v.dims[3].size) + 1;
  constexpr double chunk = 48;  // of the widest ISA: the choice, and so the plan, is the same on every one
  const double pair = dim + values, state = dim * values;
  const double quadratic = pair * (causal ? queries * (keys - std::min(keys, queries) / 2) : queries * keys);
  const double chunked = state * (queries + keys) + (causal ? pair * queries * std::min(queries, chunk) : 0.0);
  if (with_state) {
    const double whole = std::ceil(queries / chunk) * chunk;  // a chunk is computed whole
    const double filled =
        state * (whole + keys + 2) + (causal ? pair * whole * std::min(queries, chunk) : 0.0);  // 2: S in and out
    return 4 * state * (queries + keys) < filled ? kernels_.linear_attention_recurrent : kernels_.linear_attention;
  }
  return quadratic <= chunked ? kernels_.linear_attention_quadratic : kernels_.linear_attention;
}

void Planner::linear_attention(std::int32_t n) {
  const View q = unit(n, in(n, 0)), k = unit(n, in(n, 1)), v = unit(n, in(n, 2));
  require_f32(n, q, "q");
  require_f32(n, k, "k");
  require_f32(n, v, "v");
  const bool has_lengths = g_.get_integer(n, key::has_mask) != 0;
  const View lengths = has_lengths ? unit(n, in(n, 3)) : View{};
  if (has_lengths && lengths.dtype != i32)
    fail(n, "key_lengths is " + std::string(name(lengths.dtype)) + "; i32 is right");
  const auto feature =
      static_cast<activation>(g_.get_integer(n, key::function, static_cast<std::int64_t>(activation::elu_plus_one)));
  if (feature != activation::elu_plus_one && feature != activation::relu && feature != activation::exp &&
      feature != activation::none)
    fail(n, "backend '" + std::string(backend_) + "' has no feature map " + std::string(name(feature)) +
                "; none, elu_plus_one, relu and exp exist");
  const bool has_state = g_.get_integer(n, key::has_state) != 0;
  View state;
  if (has_state) {  // the kernel works in place: on a copy, which is the second result
    const View before = in(n, g_.nodes[n].inputs.count - 1);
    require_f32(n, before, "the state");
    state = allocate({n, 1}, Need::unit);
    copy(n, before, state);
    slot({n, 1}) = {state, -1};
  }
  const View out = allocate({n, 0}, Need::unit);
  const auto& form = form_of(q, k, v, g_.get_integer(n, key::causal) != 0, has_state || feature == activation::exp);
  auto& a = step(n, form, 4.0 * static_cast<double>(out.size()) * static_cast<double>(q.dims[3].size));
  a.feature = feature == activation::relu   ? kernel::Feature::relu
              : feature == activation::exp  ? kernel::Feature::exponentials
              : feature == activation::none ? kernel::Feature::identity
                                            : kernel::Feature::elu_plus_one;
  a.causal = g_.get_integer(n, key::causal) != 0;
  a.eps = static_cast<float>(g_.get_number(n, key::eps));
  operand(a.q, q);
  operand(a.k, k);
  operand(a.v, v);
  if (has_lengths) operand(a.key_lengths, lengths);
  if (has_state) operand(a.state, state, true);
  operand(a.out, out, true);
  slot({n, 0}) = {out, -1};
}

/// In chunks, or token by token where there are too few for a chunk to pay.
void Planner::recurrent_attention(std::int32_t n) {
  const View q = unit(n, in(n, 0)), k = unit(n, in(n, 1)), v = unit(n, in(n, 2));
  require_f32(n, q, "q");
  require_f32(n, k, "k");
  require_f32(n, v, "v");
  const bool has_gate = g_.get_integer(n, key::has_gate) != 0, has_beta = g_.get_integer(n, key::has_beta) != 0,
             has_state = g_.get_integer(n, key::has_state) != 0;
  int next = 3;
  View gate, beta, initial;
  if (has_gate) {
    gate = expanded(unit(n, in(n, next++)), q.shape());
    require_f32(n, gate, "log_gate");
  }
  if (has_beta) {
    beta = in(n, next++);
    require_f32(n, beta, "beta");
  }
  if (has_state) {
    initial = unit(n, in(n, next++));
    require_f32(n, initial, "the state");
  }
  const View out = allocate({n, 0}, Need::unit);
  const bool wants_state = used_[index({n, 1})] != 0;
  const View state = wants_state ? allocate({n, 1}, Need::unit) : View{};
  constexpr std::int64_t shortest_chunk = 4;  // below, a chunk's own products and S in and out cost more than it saves
  const auto& form =
      q.dims[2].size < shortest_chunk ? kernels_.recurrent_attention_recurrent : kernels_.recurrent_attention;
  auto& a = step(n, form,
                 (4.0 + (has_gate ? 1.0 : 0.0) + (has_beta ? 2.0 : 0.0)) * static_cast<double>(out.size()) *
                     static_cast<double>(q.dims[3].size));
  a.scale = static_cast<float>(g_.get_number(n, key::scale, 1));
  operand(a.q, q);
  operand(a.k, k);
  operand(a.v, v);
  if (has_gate) operand(a.log_gate, gate);
  if (has_beta) operand(a.beta, beta);
  if (has_state) operand(a.initial, initial);
  operand(a.out, out, true);
  if (wants_state) operand(a.state, state, true);
  slot({n, 0}) = {out, -1};
  slot({n, 1}) = {state, -1};
}

/// A traced function of one number; the executor compiles it, as it does score functions.
void Planner::map(std::int32_t n) {
  const View given = in(n, 0);
  require_f32(n, given, "its input");
  const View x = rows(n, given), out = allocate({n, 0}, Need::rows);
  plan_.scores.push_back({static_cast<int>(g_.get_integer(n, key::expression)),
                          {1, 1, 1, 1, iterations_.empty() ? 0 : iterations_.back(), 0},
                          {},
                          n});
  auto& a = step(n, kernels_.map, static_cast<double>(out.size()));
  operand(a.x, x);
  operand(a.out, collapsed(out), true);
  plan_.steps.back().score = static_cast<int>(plan_.scores.size()) - 1;
  slot({n, 0}) = {out, -1};
}

/// Made once per binding by the formula that the reference uses.
void Planner::random_projection(std::int32_t n) {
  const std::int64_t features = g_.get_integer(n, key::features), dim = g_.get_integer(n, key::head_dim),
                     seed = g_.get_integer(n, key::seed);
  const std::string key =
      "random_projection" + std::to_string(features) + "," + std::to_string(dim) + "," + std::to_string(seed);
  auto old = constants_.made.find(key);
  if (old == constants_.made.end()) {
    const reference::Array<float> rows = reference::random_projection<float>(features, dim, seed);
    Constants::Memory memory;
    memory.view = dense_view(nullptr, f32, rows.shape);
    memory.bytes = rows.data.size() * sizeof(float);
    memory.data = plan::allocate(memory.bytes);
    memory.view.data = memory.data.get();
    std::copy(rows.data.begin(), rows.data.end(), memory.view.as<float>());
    old = constants_.made.emplace(key, std::move(memory)).first;
  }
  slot({n, 0}) = {constant_buffer(key, old->second), -1};
}

/// The product with the projection, then the exponents from it.
void Planner::random_features(std::int32_t n) {
  const View given = in(n, 0), projection = in(n, 1);
  require_f32(n, given, "x");
  require_f32(n, projection, "the projection");
  const View x = rows(n, given), out = allocate({n, 0}, Need::rows);
  const View y = fresh(f32, {x.dims[0].size, projection.dims[0].size});
  const double flops = 2.0 * static_cast<double>(y.size()) * static_cast<double>(x.dims[1].size);
  if (constant(projection)) {
    const kernel::PackedWeights w = packed(projection, 1);
    auto& a = step(n, kernels_.linear, flops);
    a.w = w;
    operand(a.a, x);
    operand(a.out, y, true);
    plan_.steps.back().bytes += static_cast<double>(w.k * w.n) * 4;
  } else {
    View a = x, b = permuted(projection, std::vector<int>{1, 0}), to = y;
    to_rank_4(n, {&a}, 2);
    to_rank_4(n, {&b}, 2);
    to_rank_4(n, {&to}, 2);
    auto& m = step(n, kernels_.matmul, flops);
    operand(m.a, a);
    operand(m.b, b);
    operand(m.out, to, true);
  }
  auto& a = step(n, kernels_.random_features, 2.0 * static_cast<double>(x.size() + y.size()));
  a.scale = static_cast<float>(g_.get_number(n, key::scale, 1));
  operand(a.x, x);
  operand(a.y, y);
  operand(a.out, collapsed(out), true);
  slot({n, 0}) = {out, -1};
}

void Planner::additive_scores(std::int32_t n) {
  View q = unit(n, in(n, 0)), k = unit(n, in(n, 1));
  const View v = unit(n, in(n, 2));
  require_f32(n, q, "q");
  require_f32(n, k, "k");
  require_f32(n, v, "v");
  const View out = allocate({n, 0}, q.dims.size() > 4 ? Need::rows : Need::unit);
  View to = out;
  to_rank_4(n, {&q, &k, &to}, 2);
  require_unit(buffer(to), to);
  auto& a =
      step(n, kernels_.additive_scores, 4.0 * static_cast<double>(out.size()) * static_cast<double>(q.dims[3].size));
  operand(a.q, q);
  operand(a.k, k);
  operand(a.v, v);
  operand(a.out, to, true);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

#pragma once
// Every op's shape rule and cost, one line each: what the verifier, the cost report and the text parser look up.

#include <treadle/ops/attention.hpp>
#include <treadle/ops/attention_probe.hpp>
#include <treadle/ops/constant.hpp>
#include <treadle/ops/embedding.hpp>
#include <treadle/ops/experts.hpp>
#include <treadle/ops/favor.hpp>
#include <treadle/ops/feed_forward.hpp>
#include <treadle/ops/gather.hpp>
#include <treadle/ops/map.hpp>
#include <treadle/ops/norm.hpp>
#include <treadle/ops/pool.hpp>
#include <treadle/ops/recurrent_attention.hpp>
#include <treadle/ops/recurrent_layers.hpp>
#include <treadle/ops/relative_bias.hpp>
#include <treadle/ops/reshape.hpp>
#include <treadle/ops/score_attention.hpp>
#include <treadle/ops/self_attention.hpp>
#include <treadle/ops/softmax.hpp>
#include <treadle/ops/sort.hpp>
#include <treadle/ops/variants.hpp>

namespace treadle {

struct OpRule {
  treadle::op op{};
  int least_inputs = 0;
  InferRule infer = nullptr;  ///< nullptr: the outputs cannot be inferred from the inputs alone
  FlopsRule flops = rule::flops_none;
};

inline constexpr OpRule op_rules[] = {
    {op::input, 0, nullptr},
    {op::parameter, 0, nullptr},
    {op::state, 0, nullptr},
    {op::constant, 0, infer_constant},
    {op::region_input, 0, nullptr},
    {op::repeat, 1, nullptr},
    {op::output, 1, rule::same_as_first},
    {op::append, 2, infer_append},
    {op::embedding, 2, infer_embedding},
    {op::gather, 2, infer_gather},
    {op::positions, 1, infer_positions},
    {op::sinusoidal_positions, 0, nullptr},
    {op::concatenate, 1, infer_concatenate},
    {op::slice, 1, infer_slice},
    {op::transpose, 1, infer_transpose},
    {op::reshape, 1, infer_reshape},
    {op::split_heads, 1, infer_split_heads},
    {op::merge_heads, 1, infer_merge_heads},
    {op::add, 2, infer_broadcast, rule::flops_per_element},
    {op::multiply, 2, infer_broadcast, rule::flops_per_element},
    {op::scale, 1, rule::same_as_first, rule::flops_per_element},
    {op::softcap, 1, infer_softcap, rule::flops_per_element},
    {op::dropout, 2, infer_dropout, rule::flops_per_element},
    {op::linear, 2, infer_linear, flops_linear},
    {op::matmul, 2, infer_matmul, flops_matmul},
    {op::activation, 1, rule::same_as_first, rule::flops_per_element},
    {op::map, 1, infer_map, rule::flops_per_element},
    {op::rope, 1, infer_rope, flops_rope},
    {op::softmax, 1, rule::same_as_first, flops_softmax},
    {op::log_softmax, 1, rule::same_as_first, flops_softmax},
    {op::logsumexp, 1, infer_logsumexp, flops_logsumexp},
    {op::argmax, 1, infer_argmax, flops_argmax},
    {op::argsort, 1, infer_argsort, flops_argsort},
    {op::top_k_mask, 1, infer_top_k_mask, flops_top_k_mask},
    {op::cross_entropy, 2, infer_cross_entropy, flops_logsumexp},
    {op::pool, 1, infer_pool, flops_pool},
    {op::mask, 0, infer_mask},
    {op::mask_to_bias, 1, infer_mask_to_bias},
    {op::select, 2, infer_select},
    {op::relative_bias, 1, infer_relative_bias},
    {op::attention, 3, infer_attention, flops_attention},
    {op::attention_probe, 3, infer_attention_probe, flops_attention_probe},
    {op::linear_attention, 3, infer_linear_attention, flops_linear_attention},
    {op::recurrent_attention, 3, infer_recurrent_attention, flops_recurrent_attention},
    {op::additive_scores, 3, infer_additive_scores, flops_additive_scores},
    {op::random_projection, 0, infer_random_projection},
    {op::random_features, 2, infer_random_features, flops_random_features},
    {op::moe, 4, infer_moe, flops_moe},
    {op::layer_norm, 1, infer_norm, flops_norm},
    {op::rms_norm, 1, infer_norm, flops_norm},
    {op::add_layer_norm, 2, infer_add_norm, flops_add_norm},
    {op::add_rms_norm, 2, infer_add_norm, flops_add_norm},
    {op::embedding_sum, 3, infer_embedding_sum, flops_embedding_sum},
    {op::gated_linear, 3, infer_gated_linear, flops_gated_linear},
};
static_assert(sizeof(op_rules) / sizeof(op_rules[0]) == op_count);
static_assert([] {
  for (int i = 0; i < op_count; ++i)
    if (static_cast<int>(op_rules[i].op) != i) return false;
  return true;
}());

constexpr const OpRule& rule_of(op o) { return op_rules[static_cast<int>(o)]; }

/// dtype and shape of each input of node `n`.
constexpr Inputs inputs_of(GraphView g, std::int32_t n) {
  Inputs in;
  for (Value v : g.inputs(n)) {
    OutputSpec o;
    o.dtype = g.info(v).dtype;
    for (Dim d : g.shape(v)) o.shape.push_back(d);
    in.push_back(o);
  }
  return in;
}

/// What a node costs: useful floating-point operations, and the bytes that must at least be read and written.
struct Cost {
  Dim flops = 0, bytes = 0;
};

/// Adds the dims to the graph's pool. A mask's non-zeros are a symbol that is known at bind. A repeat's body counts
/// `times`.
constexpr Cost cost_of(Graph& g, std::int32_t n) {
  const NodeSpec s = spec_of(g, n);
  const Inputs in = inputs_of(g, n);
  Cost c;
  c.flops = s.outputs.empty() ? g.dims.number(0) : rule_of(s.op).flops(g, s, in);
  c.bytes = g.dims.number(0);
  const bool moves = s.op != op::input && s.op != op::parameter && s.op != op::state && s.op != op::region_input &&
                     s.op != op::constant && s.op != op::mask && s.op != op::repeat;
  if (!moves) return c;
  for (const OutputSpec& o : in)
    c.bytes = g.dims.add(c.bytes, g.dims.times(rule::product(g, o.shape), static_cast<std::int64_t>(size_of(o.dtype))));
  for (const OutputSpec& o : s.outputs)
    c.bytes = g.dims.add(c.bytes, g.dims.times(rule::product(g, o.shape), static_cast<std::int64_t>(size_of(o.dtype))));
  return c;
}

/// The whole graph.
constexpr Cost cost_of(Graph& g) {
  Cost total{g.dims.number(0), g.dims.number(0)};
  for (std::int32_t n = 0; n < static_cast<std::int32_t>(g.nodes.size()); ++n) {
    Cost c = cost_of(g, n);
    for (std::int32_t r = g.nodes[n].region; r > 0; r = g.regions[r].parent) {
      const std::int64_t times = g.view().get_integer(g.regions[r].repeat_node, key::times, 1);
      c.flops = g.dims.times(c.flops, times);
      c.bytes = g.dims.times(c.bytes, times);
    }
    total.flops = g.dims.add(total.flops, c.flops);
    total.bytes = g.dims.add(total.bytes, c.bytes);
  }
  return total;
}

}  // namespace treadle

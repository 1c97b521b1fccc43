#include "attention_model.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/ops/attention_probe.hpp>
#include <treadle/passes/pipeline.hpp>

#include <fmt/format.h>

namespace treadle::cli {

Graph attention_model(const Variant& variant, const AttentionShape& shape, bool weights) {
  Builder g;
  const Node q = g.input("q", f32, {batch, shape.heads, seq, shape.head_dim});
  const Node k = g.input("k", f32, {batch, shape.kv_heads, seq, shape.head_dim});
  const Node v = g.input("v", f32, {batch, shape.kv_heads, seq, shape.head_dim});
  if (variant.table) {
    const DimSpec blocks = ceil_div(seq, variant.table->block);
    g.input(variant.table->name, boolean, {blocks, blocks});
  }
  const AttentionVariant attention = variant.at_shape ? variant.at_shape(shape) : variant.attention;
  const Node x = merge_heads(v);  // what gates are projections of
  const Node out = attend(attention, {q, k, v, x, x});
  g.output("out", out);
  if (weights) g.output("weights", attention_weights(out));
  const Graph graph = g.finish();
  if (graph.error)
    throw Error(fmt::format("variant '{}' cannot be made here: {}, expected {}", variant.name,
                            graph.strings[graph.error.got], graph.strings[graph.error.expected]));
  return optimise(graph);
}

}  // namespace treadle::cli

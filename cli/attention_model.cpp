#include "attention_model.hpp"

#include <treadle/ops/favor.hpp>
#include <treadle/passes/pipeline.hpp>

namespace treadle::cli {

Graph attention_model(const Variant& variant, const AttentionShape& shape) {
  Builder g;
  const Node q = g.input("q", f32, {batch, shape.heads, seq, shape.head_dim});
  const Node k = g.input("k", f32, {batch, shape.kv_heads, seq, shape.head_dim});
  const Node v = g.input("v", f32, {batch, shape.kv_heads, seq, shape.head_dim});
  if (variant.features > 0) {
    g.output("out",
             favor_attention(q, k, v, {.features = variant.features, .causal = variant.causal, .seed = variant.seed}));
  } else if (variant.linear) {
    g.output("out", linear_attention(q, k, v, {.causal = variant.causal}));
  } else {
    if (variant.table) {
      const DimSpec blocks = ceil_div(seq, variant.table->block);
      g.input(variant.table->name, boolean, {blocks, blocks});
    }
    g.output("out", attention(q, k, v, {.mask = variant.mask}));
  }
  return optimise(g.finish());
}

}  // namespace treadle::cli

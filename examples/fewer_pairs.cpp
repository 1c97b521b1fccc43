// Attention that does not look at all pairs: what each keeps, by length. The graphs are made at run time here; all of
// this also stands in constant evaluation.

#include <treadle/treadle.hpp>

#include <cstdint>
#include <cstdio>

using namespace treadle;

struct Heads {
  Node x, q, k, v;
};
Heads heads_of(Builder& g) {
  const Node x = g.input("x", f32, {1, seq, 32});
  const auto project = [&](const char* name) { return split_heads(linear(name, x, {.width = 32}), 4); };
  return {x, project("q"), project("k"), project("v")};
}

// --- through fewer keys
Node pooled(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return pooled_attention(q, k, v, {.ratio = 4, .causal = true});
}
Node linformer(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return linformer_attention("low", q, k, v, {.length = 32, .max_length = 4096});
}
Node nystrom(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return nystrom_attention(q, k, v, {.landmarks = 32});
}

// --- nearby exactly, far away by summaries
Node hierarchical(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return hierarchical_attention(q, k, v, {.block = 32, .near = 1, .causal = true});
}
Node two_masks(Builder& g) {  // the same by hand: any two attentions over different keys become one softmax
  const auto [x, q, k, v] = heads_of(g);
  const Node nearby = attention(q, k, v, {.mask = causal & window(63, 0)});
  const Node first = attention(q, k, v, {.mask = prefix(4) & causal & ~window(63, 0)});
  return merge_attention({part_of(nearby), part_of(first)});
}

// --- by what the tokens say
Node routing(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  const Node centroids = g.parameter("centroids", {g.dim_number(4), g.dim_number(16), g.dim_number(8)});
  return routing_attention(q, k, v, centroids, {.causal = true});
}

// --- sparse
Node longformer_layer(Builder& g) {
  return longformer_attention("attn", heads_of(g).x, {.heads = 4, .window = 64, .globals = {0}});
}
Node big_bird_blocks(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return attention(q, k, v, {.mask = big_bird({.block = 16, .window = 3, .first = 1, .last = 1})});
}
Node strided_pattern(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return attention(q, k, v, {.mask = sparse_transformer_strided(32)});
}
Node largest_scores(Builder& g) {
  const auto [x, q, k, v] = heads_of(g);
  return top_k_attention(q, k, v, {.k = 16, .mask = causal});
}

int main() {
  const struct {
    const char* name;
    Node (*make)(Builder&);
  } all[] = {{"pooled", pooled},
             {"linformer", linformer},
             {"nystrom", nystrom},
             {"hierarchical", hierarchical},
             {"two masks", two_masks},
             {"routing", routing},
             {"longformer", longformer_layer},
             {"big_bird", big_bird_blocks},
             {"strided", strided_pattern},
             {"top_k", largest_scores}};
  std::printf("pairs of a head for each token, at 256, 1024 and 4096 tokens\n");
  for (const auto& variant : all) {
    Builder g;
    const Node y = variant.make(g);
    g.output("y", y);
    const Graph graph = g.finish();
    BoundModel model(graph, Parameters::random(graph, 1), {.backend = "simd"});
    std::printf("%-13s", variant.name);
    for (const std::int64_t length : {256, 1024, 4096}) {
      model.bind_dims({{"seq", length}});
      double pairs = 0;
      bool upper_bound = false;
      for (const StepInfo& step : model.steps()) {
        if (step.op != op::attention) continue;
        pairs += step.useful_flops / (4 * 4 * 8);  // 4 heads of 8: 2·(head_dim + value_dim) FLOPs a pair
        upper_bound = upper_bound || step.upper_bound;
      }
      std::printf(" %s%7.1f", upper_bound ? "<=" : "  ", pairs / static_cast<double>(length));
    }
    std::printf("\n");
  }
}

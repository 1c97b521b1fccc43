// One block, any attention: the variants swapped into the same layer, against float64, and as the nodes they stand for.

#include "op_check.hpp"

#include <treadle/graph/text.hpp>
#include <treadle/ops/variants.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(attention_variants)

namespace {

Graph layer(const AttentionVariant& variant, std::optional<Mask> mask = {}) {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 24});
  g.output("y", self_attention("attn", x, {.heads = 3, .mask = mask, .variant = variant}));
  return g.finish();
}

/// The same projections around attention over q, k, v that `apply` makes.
template <class F>
Graph written(F apply) {
  Builder g;
  const Node x = g.input("x", f32, {batch, seq, 24});
  g.push_scope("attn");
  const auto heads = [&](std::string_view leaf) { return split_heads(linear(leaf, x, {.width = 24}), 3); };
  const Node q = heads("q"), k = heads("k"), v = heads("v");
  const Node y = linear("out", merge_heads(apply(q, k, v)), {.width = 24});
  g.pop_scope();
  g.output("y", y);
  return g.finish();
}

std::string refusal(const AttentionVariant& variant, const AttentionOptions& options) {
  return mistake([&](Builder& g) {
    const Node q = g.input("q", f32, {batch, 2, seq, 8});
    return attend(variant, {q, q, q}, options);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(any_variant_runs_in_the_same_block) {
  for (const AttentionVariant& variant :
       {AttentionVariant(), AttentionVariant(causal & window(3, 0)), longformer(4, {0, 2}), longformer(4, {}),
        variants::linear(), variants::linear({.feature = activation::relu, .causal = true, .eps = 0.5}),
        performer({.features = 16}), performer({.features = 16, .causal = true, .seed = 5}), variants::retention(),
        variants::gated_linear(), variants::delta_rule(), linformer({.length = 5, .max_length = 40}),
        variants::nystrom(4), variants::pooled({.ratio = 3}), variants::pooled({.ratio = 3, .causal = true}),
        variants::hierarchical({.block = 4}), variants::hierarchical({.block = 4, .causal = true})}) {
    BOOST_TEST_CONTEXT(variant.name)
    for (const std::int64_t n : {1, 7, 16, 33}) check(layer(variant), {{"batch", 2}, {"seq", n}});
  }
}

/// Both print the same.
void same(const Graph& a, const Graph& b) { BOOST_TEST(to_text(a) == to_text(b)); }

BOOST_AUTO_TEST_CASE(a_variant_is_what_it_stands_for) {
  same(layer(longformer(8, {0})),
       written([](Node q, Node k, Node v) { return attention(q, k, v, {.mask = window(4, 4) | global_tokens({0})}); }));
  same(layer(variants::linear({.eps = 1}), causal),
       written([](Node q, Node k, Node v) { return linear_attention(q, k, v, {.causal = true, .eps = 1}); }));
  same(layer(performer({.features = 8, .seed = 3})),
       written([](Node q, Node k, Node v) { return favor_attention(q, k, v, {.features = 8, .seed = 3}); }));
  same(layer(window(3, 0), causal),
       written([](Node q, Node k, Node v) { return attention(q, k, v, {.mask = window(3, 0) & causal}); }));
}

BOOST_AUTO_TEST_CASE(the_causal_form_of_a_variant_and_a_causal_layer_are_one) {
  AttentionVariant top = variants::top_k(4);
  same(layer(top, causal),
       written([](Node q, Node k, Node v) { return top_k_attention(q, k, v, {.k = 4, .mask = causal}); }));
  top.mask = causal;
  same(layer(top), layer(variants::top_k(4), causal));
  same(layer(top, window(2, 0)), layer(variants::top_k(4), causal & window(2, 0)));
  same(layer(variants::linear({.causal = true})), layer(variants::linear(), causal));
  same(layer(variants::linear({.causal = true}), causal), layer(variants::linear(), causal));
  same(layer(performer({.features = 8, .causal = true})), layer(performer({.features = 8}), causal));
  same(layer(variants::pooled({.causal = true})), layer(variants::pooled(), causal));
  same(layer(variants::hierarchical({.causal = true})), layer(variants::hierarchical(), causal));
  same(layer(variants::routing({.causal = true})), layer(variants::routing(), causal));
  same(layer(variants::retention(), causal), layer(variants::retention()));
}

BOOST_AUTO_TEST_CASE(a_variant_of_ones_own) {
  const AttentionVariant twice(
      "twice", [](const AttentionVariant&, const AttentionInputs& in, const AttentionOptions& o, Where where) {
        const Node y = attention(in.q, in.k, in.v, o, where);
        return y + y;
      });
  same(layer(twice), written([](Node q, Node k, Node v) {
         const Node y = attention(q, k, v);
         return y + y;
       }));
}

BOOST_AUTO_TEST_CASE(what_a_variant_cannot_do_is_refused) {
  const auto f = score_mod([](auto s, auto, auto, auto, auto) { return s + 1; });
  BOOST_TEST(refusal(variants::linear(), {.mask = window(3, 0)}) == "a mask with linear | the causal mask or none");
  BOOST_TEST(refusal(performer(), {.mask = causal | window(3, 0)}) ==
             "a mask with performer | the causal mask or none");
  BOOST_TEST(refusal(variants::linear(), {.score = f}) ==
             "a score function with linear | softmax attention, or no score function");
  BOOST_TEST(refusal(variants::linear(), {.scale = 2}) == "a scale with linear | no scale");
  BOOST_TEST(refusal(variants::gated_linear({.temperature = 0}), {}) ==
             "gated_linear with a temperature not above 0 | 16, for example");
  AttentionVariant scored;
  scored.score = f;
  BOOST_TEST(refusal(scored, {.score = f}) == "two score functions | that of the variant or that of the layer");
}

BOOST_AUTO_TEST_SUITE_END()

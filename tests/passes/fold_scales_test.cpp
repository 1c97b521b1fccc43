#include <treadle/models/examples.hpp>
#include <treadle/passes/fold_scales.hpp>
#include <treadle/passes/merge_qkv.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

// Scaled queries as people write them: the factor ends in attention's own scale.
static_assert([] {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 32});
  const Node q = scale(split_heads(linear("q", x, {.width = 32}), 4), 0.5);
  const Node k = split_heads(linear("k", x, {.width = 32}), 4);
  b.output("y", merge_heads(attention(q, k, k, {.scale = 0.25})));
  const Graph g = fold_scales(b.finish());
  for (std::int32_t n = 0; n < g.view().size(); ++n)
    if (g.nodes[n].op == op::attention && g.view().get_number(n, key::scale) != 0.125) return false;
  return !verify(g) && g.count(op::scale) == 0 && g.count(op::attention) == 1;
}());

const std::string linear_start = "%0 = input \"x\" () : f32[batch, 4]\n%1 = parameter \"w\" () : f32[4, 4]\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(fold_scales_pass)

BOOST_AUTO_TEST_CASE(below_a_projection_into_weight_and_bias) {
  BOOST_TEST(test::run(fold_scales, linear_start + R"(
%2 = parameter "b" () : f32[4]
%3 = linear "proj" (%0, %1, %2) {has_bias=1, has_residual=0, function=none} : f32[batch, 4]
%4 = scale (%3) {factor=0.125} : f32[batch, 4]
%5 = output "y" (%4) : f32[batch, 4]
)",
                       1) == linear_start + R"(%2 = parameter "b" () : f32[4]
%3 = scale (%1) {factor=0.125} : f32[4, 4]
%4 = scale (%2) {factor=0.125} : f32[4]
%5 = linear "proj" (%0, %3, %4) {has_bias=1, has_residual=0, function=none} : f32[batch, 4]
%6 = output "y" (%5) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(above_projections_into_their_weights_alone) {
  BOOST_TEST(test::run(fold_scales, linear_start + R"(
%2 = parameter "b" () : f32[4]
%3 = parameter "v" () : f32[4, 4]
%4 = scale (%0) {factor=-2} : f32[batch, 4]
%5 = linear (%4, %1, %2) {has_bias=1, has_residual=0, function=silu} : f32[batch, 4]
%6 = linear (%4, %3, %5) {has_bias=0, has_residual=1, function=none} : f32[batch, 4]
%7 = output "y" (%6) : f32[batch, 4]
)",
                       1) == linear_start + R"(%2 = parameter "b" () : f32[4]
%3 = parameter "v" () : f32[4, 4]
%4 = scale (%1) {factor=-2} : f32[4, 4]
%5 = linear (%0, %4, %2) {has_bias=1, has_residual=0, function=silu} : f32[batch, 4]
%6 = scale (%3) {factor=-2} : f32[4, 4]
%7 = linear (%0, %6, %5) {has_bias=0, has_residual=1, function=none} : f32[batch, 4]
%8 = output "y" (%7) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(several_scales_and_heads_in_between) {
  BOOST_TEST(test::run(fold_scales, R"(
%0 = input "x" () : f32[batch, seq, 4]
%1 = parameter "w" () : f32[4, 4]
%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, seq, 4]
%3 = scale (%2) {factor=2} : f32[batch, seq, 4]
%4 = split_heads (%3) {heads=2} : f32[batch, 2, seq, 2]
%5 = scale (%4) {factor=4} : f32[batch, 2, seq, 2]
%6 = scale (%5) {factor=1} : f32[batch, 2, seq, 2]
%7 = output "y" (%6) : f32[batch, 2, seq, 2]
)",
                       3) == R"(%0 = input "x" () : f32[batch, seq, 4]
%1 = parameter "w" () : f32[4, 4]
%2 = scale (%1) {factor=8} : f32[4, 4]
%3 = linear (%0, %2) {has_bias=0, has_residual=0, function=none} : f32[batch, seq, 4]
%4 = split_heads (%3) {heads=2} : f32[batch, 2, seq, 2]
%5 = output "y" (%4) : f32[batch, 2, seq, 2]
)");
}

BOOST_AUTO_TEST_CASE(a_norm_takes_it_into_gamma_and_beta) {
  BOOST_TEST(test::run(fold_scales, R"(
%0 = input "x" () : f32[batch, 4]
%1 = parameter "gamma" () : f32[4]
%2 = parameter "beta" () : f32[4]
%3 = layer_norm (%0, %1, %2) {has_weight=1, has_bias=1, eps=1e-05} : f32[batch, 4]
%4 = scale (%3) {factor=0.5} : f32[batch, 4]
%5 = output "y" (%4) : f32[batch, 4]
)",
                       1) == R"(%0 = input "x" () : f32[batch, 4]
%1 = parameter "gamma" () : f32[4]
%2 = parameter "beta" () : f32[4]
%3 = scale (%1) {factor=0.5} : f32[4]
%4 = scale (%2) {factor=0.5} : f32[4]
%5 = layer_norm (%0, %3, %4) {has_weight=1, has_bias=1, eps=1e-05} : f32[batch, 4]
%6 = output "y" (%5) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(projections_with_folded_scales_are_still_merged) {
  const Graph g = merge_qkv(fold_scales(parse_graph(linear_start + R"(
%2 = parameter "v" () : f32[4, 4]
%3 = linear "a" (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%4 = linear "b" (%0, %2) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%5 = scale (%4) {factor=3} : f32[batch, 4]
%6 = multiply (%3, %5) : f32[batch, 4]
%7 = output "y" (%6) : f32[batch, 4]
)")));
  for (const std::string& v : violations(g)) BOOST_ERROR(v);
  BOOST_TEST(g.count(op::linear) == 1);
  BOOST_TEST(g.count(op::scale) == 1);
}

BOOST_AUTO_TEST_CASE(what_must_not_move) {
  const std::string projection = "%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]\n";
  // The projection is read twice; an activation stands in between.
  test::unchanged(fold_scales, linear_start + projection +
                                   "%3 = scale (%2) {factor=2} : f32[batch, 4]\n%4 = multiply (%2, %3) : f32[batch, "
                                   "4]\n%5 = output \"y\" (%4) : f32[batch, 4]\n");
  test::unchanged(fold_scales, linear_start + projection +
                                   "%3 = activation (%2) {function=gelu} : f32[batch, 4]\n%4 = scale (%3) {factor=2} : "
                                   "f32[batch, 4]\n%5 = output \"y\" (%4) : f32[batch, 4]\n");
  // Another projection reads the weight; something else reads the scaled value.
  test::unchanged(fold_scales, linear_start +
                                   "%2 = scale (%0) {factor=2} : f32[batch, 4]\n%3 = linear (%2, %1) {has_bias=0, "
                                   "has_residual=0, function=none} : f32[batch, 4]\n%4 = linear (%3, %1) {has_bias=0, "
                                   "has_residual=0, function=none} : f32[batch, 4]\n%5 = output \"y\" (%4) : "
                                   "f32[batch, 4]\n");
  test::unchanged(fold_scales, linear_start +
                                   "%2 = scale (%0) {factor=2} : f32[batch, 4]\n%3 = linear (%2, %1) {has_bias=0, "
                                   "has_residual=0, function=none} : f32[batch, 4]\n%4 = add (%2, %3) : f32[batch, 4]\n"
                                   "%5 = output \"y\" (%4) : f32[batch, 4]\n");
  // A weight that each run computes; an embedding.
  test::unchanged(fold_scales,
                  "%0 = input \"x\" () : f32[batch, 4]\n%1 = input \"w\" () : f32[4, 4]\n%2 = scale (%0) {factor=2} : "
                  "f32[batch, 4]\n%3 = linear (%2, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]\n"
                  "%4 = output \"y\" (%3) : f32[batch, 4]\n");
  test::unchanged(
      fold_scales,
      "%0 = input \"ids\" () : i32[seq]\n%1 = parameter \"table\" () : f32[9, 4]\n%2 = embedding (%1, %0) : "
      "f32[seq, 4]\n%3 = scale (%2) {factor=2} : f32[seq, 4]\n%4 = output \"y\" (%3) : f32[seq, 4]\n");
}

BOOST_AUTO_TEST_SUITE_END()

#include <treadle/models/examples.hpp>
#include <treadle/passes/merge_qkv.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

static_assert([] {
  const Graph g = merge_qkv(models::tiny_gpt());  // q, k, v of the one attention in its body
  return g.count(op::linear) == models::tiny_gpt().count(op::linear) - 2 && g.count(op::slice) == 3 &&
         g.count(op::concatenate) == 2;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(merge_qkv_pass)

BOOST_AUTO_TEST_CASE(projections_of_one_value_become_one) {
  BOOST_TEST(test::run(merge_qkv, R"(
%0 = input "x" () : f32[batch, seq, 8]
%1 = parameter "q.weight" () : f32[8, 8]
%2 = parameter "q.bias" () : f32[8]
%3 = linear "q" (%0, %1, %2) {has_bias=1, has_residual=0, function=none} : f32[batch, seq, 8]
%4 = scale (%3) {factor=0.5} : f32[batch, seq, 8]
%5 = parameter "k.weight" () : f32[4, 8]
%6 = parameter "k.bias" () : f32[4]
%7 = linear "k" (%0, %5, %6) {has_bias=1, has_residual=0, function=none} : f32[batch, seq, 4]
%8 = output "q" (%4) : f32[batch, seq, 8]
%9 = output "k" (%7) : f32[batch, seq, 4]
)",
                       1) == R"(%0 = input "x" () : f32[batch, seq, 8]
%1 = parameter "q.weight" () : f32[8, 8]
%2 = parameter "q.bias" () : f32[8]
%3 = parameter "k.weight" () : f32[4, 8]
%4 = concatenate (%1, %3) {axis=0} : f32[12, 8]
%5 = parameter "k.bias" () : f32[4]
%6 = concatenate (%2, %5) {axis=0} : f32[12]
%7 = linear "q+k" (%0, %4, %6) {has_bias=1, has_residual=0, function=none} : f32[batch, seq, 12]
%8 = slice "q" (%7) {axis=2, begin=0, length=8} : f32[batch, seq, 8]
%9 = slice "k" (%7) {axis=2, begin=8, length=4} : f32[batch, seq, 4]
%10 = scale (%8) {factor=0.5} : f32[batch, seq, 8]
%11 = output "q" (%10) : f32[batch, seq, 8]
%12 = output "k" (%9) : f32[batch, seq, 4]
)");
}

BOOST_AUTO_TEST_CASE(different_projections_stay_apart) {
  const std::string start = R"(%0 = input "x" () : f32[batch, 4]
%1 = input "z" () : f32[batch, 4]
%2 = parameter "a" () : f32[4, 4]
%3 = parameter "b" () : f32[4, 4]
%4 = parameter "c" () : f32[4]
%5 = linear (%0, %2) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
)",
                    end = "%7 = output \"p\" (%5) : f32[batch, 4]\n%8 = output \"q\" (%6) : f32[batch, 4]\n";
  for (const char* other : {"(%1, %3) {has_bias=0, has_residual=0, function=none}",      // another input
                            "(%0, %3, %4) {has_bias=1, has_residual=0, function=none}",  // with a bias
                            "(%0, %3) {has_bias=0, has_residual=0, function=relu}",      // with a function
                            "(%0, %3, %1) {has_bias=0, has_residual=1, function=none}",  // with a residual
                            "(%0, %2) {has_bias=0, has_residual=0, function=none}"})     // tied weights
    test::unchanged(merge_qkv, start + "%6 = linear " + other + " : f32[batch, 4]\n" + end);
}

BOOST_AUTO_TEST_CASE(two_groups_in_one_graph) {
  const Graph g = merge_qkv(models::encoder_decoder());
  // Encoder self-attention, decoder self-attention, and k, v of the cross-attention.
  BOOST_TEST(g.count(op::concatenate) == 6);
  BOOST_TEST(g.count(op::slice) == 8);
  BOOST_TEST(!verify(g));
}

BOOST_AUTO_TEST_SUITE_END()

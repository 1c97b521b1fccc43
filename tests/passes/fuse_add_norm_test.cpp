#include <treadle/models/examples.hpp>
#include <treadle/passes/fuse_add_norm.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

static_assert([] {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 8}), y = b.input("y", f32, {batch, seq, 8});
  const Node sum = x + y;
  b.output("z", sum * layer_norm("ln", sum));
  const Graph g = fuse_add_norm(b.finish());
  return !verify(g) && g.count(op::add_layer_norm) == 1 && g.count(op::add) == 0 && g.count(op::layer_norm) == 0;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(fuse_add_norm_pass)

BOOST_AUTO_TEST_CASE(both_results_are_read) {
  BOOST_TEST(test::run(fuse_add_norm, R"(
%0 = input "x" () : f32[batch, 4]
%1 = input "y" () : f32[batch, 4]
%2 = add (%0, %1) : f32[batch, 4]
%3 = activation (%2) {function=relu} : f32[batch, 4]
%4 = parameter "g" () : f32[4]
%5 = parameter "b" () : f32[4]
%6 = scale (%4) {factor=2} : f32[4]
%7 = layer_norm "ln" (%2, %6, %5) {has_weight=1, has_bias=1, eps=1e-05} : f32[batch, 4]
%8 = multiply (%3, %7) : f32[batch, 4]
%9 = output "z" (%8) : f32[batch, 4]
)",
                       1) == R"(%0 = input "x" () : f32[batch, 4]
%1 = input "y" () : f32[batch, 4]
%2 = parameter "g" () : f32[4]
%3 = scale (%2) {factor=2} : f32[4]
%4 = parameter "b" () : f32[4]
%5 = add_layer_norm "ln" (%0, %1, %3, %4) {has_weight=1, has_bias=1, eps=1e-05} : f32[batch, 4], f32[batch, 4]
%6 = activation (%5) {function=relu} : f32[batch, 4]
%7 = multiply (%6, %5#1) : f32[batch, 4]
%8 = output "z" (%7) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(one_of_two_norms) {
  const std::string text = test::run(fuse_add_norm, R"(
%0 = input "x" () : f32[batch, 4]
%1 = add (%0, %0) : f32[batch, 4]
%2 = rms_norm (%1) {has_weight=0, eps=1e-06} : f32[batch, 4]
%3 = layer_norm (%1) {has_weight=0, has_bias=0, eps=1e-05} : f32[batch, 4]
%4 = multiply (%2, %3) : f32[batch, 4]
%5 = output "z" (%4) : f32[batch, 4]
)",
                                     1);
  BOOST_TEST(text.find("%1 = add_rms_norm (%0, %0)") != std::string::npos);
  BOOST_TEST(text.find("%2 = layer_norm (%1)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_must_stay) {
  // An addition that broadcasts; a gamma that the run computes.
  test::unchanged(fuse_add_norm, R"(
%0 = input "x" () : f32[batch, 4]
%1 = input "row" () : f32[4]
%2 = add (%0, %1) : f32[batch, 4]
%3 = rms_norm (%2) {has_weight=0, eps=1e-06} : f32[batch, 4]
%4 = output "z" (%3) : f32[batch, 4]
)");
  test::unchanged(fuse_add_norm, R"(
%0 = input "x" () : f32[batch, 4]
%1 = input "row" () : f32[4]
%2 = add (%0, %0) : f32[batch, 4]
%3 = activation (%1) {function=tanh} : f32[4]
%4 = rms_norm (%2, %3) {has_weight=1, eps=1e-06} : f32[batch, 4]
%5 = output "z" (%4) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_norm_in_the_next_iteration_stays) {
  // The body's sum is carried; the norm that reads it stands in the same body, one iteration later.
  test::unchanged(fuse_add_norm, R"(
%0 = input "x" () : f32[batch, 4]
%5 = repeat "h" (%0) {times=3, carried=1} region {
  %1 = region_input () {index=0} : f32[batch, 4]
  %2 = rms_norm (%1) {has_weight=0, eps=1e-06} : f32[batch, 4]
  %3 = activation (%2) {function=tanh} : f32[batch, 4]
  %4 = add (%1, %3) : f32[batch, 4]
  results (%4)
} : f32[batch, 4]
%6 = output "y" (%5) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(the_sum_is_not_read_again) {
  const auto bytes = [](Graph g) {
    const Dim all = cost_of(g).bytes;
    return *g.dims.constant(all);
  };
  const auto model = [] {
    Builder b;
    const Node x = b.input("x", f32, {32, 16}), y = b.input("y", f32, {32, 16});
    const Node sum = x + y;
    b.output("z", sum * rms_norm("ln", sum));
    return b.finish();
  };
  BOOST_TEST(bytes(model()) - bytes(fuse_add_norm(model())) == 4 * 32 * 16);
}

BOOST_AUTO_TEST_SUITE_END()

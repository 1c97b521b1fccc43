#include <treadle/models/examples.hpp>
#include <treadle/passes/fuse_epilogue.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

static_assert([] {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 8});
  b.output("y", x + ffn("mlp", x, {.hidden = 16, .activation = gelu}));
  const Graph g = fuse_epilogue(b.finish());
  return g.count(op::activation) == 0 && g.count(op::add) == 0 && g.count(op::linear) == 2;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(fuse_epilogue_pass)

BOOST_AUTO_TEST_CASE(bias_activation_and_residual_move_into_the_projection) {
  BOOST_TEST(test::run(fuse_epilogue, R"(
%0 = input "x" () : f32[batch, 4]
%1 = parameter "w" () : f32[4, 4]
%2 = linear "proj" (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%3 = parameter "b" () : f32[4]
%4 = add (%3, %2) : f32[batch, 4]
%5 = activation (%4) {function=silu} : f32[batch, 4]
%6 = add (%0, %5) : f32[batch, 4]
%7 = output "y" (%6) : f32[batch, 4]
)",
                       3) == R"(%0 = input "x" () : f32[batch, 4]
%1 = parameter "w" () : f32[4, 4]
%2 = parameter "b" () : f32[4]
%3 = linear "proj" (%0, %1, %2, %0) {has_bias=1, has_residual=1, function=silu} : f32[batch, 4]
%4 = output "y" (%3) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(one_of_two_projections_takes_the_other_as_residual) {
  BOOST_TEST(test::run(fuse_epilogue, R"(
%0 = input "x" () : f32[batch, 4]
%1 = parameter "v" () : f32[4, 4]
%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%3 = parameter "w" () : f32[4, 4]
%4 = linear (%0, %3) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%5 = add (%2, %4) : f32[batch, 4]
%6 = output "y" (%5) : f32[batch, 4]
)",
                       1) == R"(%0 = input "x" () : f32[batch, 4]
%1 = parameter "v" () : f32[4, 4]
%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%3 = parameter "w" () : f32[4, 4]
%4 = linear (%0, %3, %2) {has_bias=0, has_residual=1, function=none} : f32[batch, 4]
%5 = output "y" (%4) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(what_must_not_move) {
  // An activation after the residual; a second reader; an addition that broadcasts.
  for (const char* rest :
       {"%3 = add (%2, %0) : f32[batch, 4]\n%4 = scale (%2) {factor=2} : f32[batch, 4]\n%5 = output \"z\" (%4) : "
        "f32[batch, 4]\n"
        "%6 = output \"y\" (%3) : f32[batch, 4]\n",
        "%3 = input \"big\" () : f32[3, batch, 4]\n%4 = add (%2, %3) : f32[3, batch, 4]\n%5 = output \"y\" (%4) : "
        "f32[3, batch, 4]\n",
        "%3 = input \"row\" () : f32[4]\n%4 = add (%2, %3) : f32[batch, 4]\n%5 = output \"y\" (%4) : f32[batch, 4]\n",
        "%3 = add (%2, %2) : f32[batch, 4]\n%4 = output \"y\" (%3) : f32[batch, 4]\n"}) {
    test::unchanged(fuse_epilogue,
                    std::string("%0 = input \"x\" () : f32[batch, 4]\n%1 = parameter \"w\" () : f32[4, 4]\n"
                                "%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]\n") +
                        rest);
  }
  test::unchanged(fuse_epilogue, R"(
%0 = input "x" () : f32[batch, 4]
%1 = parameter "w" () : f32[4, 4]
%2 = linear (%0, %1, %0) {has_bias=0, has_residual=1, function=none} : f32[batch, 4]
%3 = activation (%2) {function=relu} : f32[batch, 4]
%4 = output "y" (%3) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(an_activation_with_a_number_of_its_own_stays) {
  test::unchanged(fuse_epilogue, R"(
%0 = input "x" () : f32[batch, 4]
%1 = parameter "w" () : f32[4, 4]
%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%3 = activation (%2) {function=elu, alpha=0.5} : f32[batch, 4]
%4 = output "y" (%3) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_result_of_a_body_counts_as_a_reader) {
  test::unchanged(fuse_epilogue, R"(
%0 = input "x" () : f32[4]
%5 = repeat "h" (%0) {times=2, carried=1, captured=0, states=0, sides=1} region {
  %1 = region_input () {index=0} : f32[4]
  %2 = parameter "h.#" "w" () : f32[4, 4]
  %3 = linear (%1, %2) {has_bias=0, has_residual=0, function=none} : f32[4]
  %4 = activation (%3) {function=relu} : f32[4]
  results (%4, %3)
} : f32[4], f32[2, 4]
%6 = output "y" (%5) : f32[4]
%7 = output "side" (%5#1) : f32[2, 4]
)");
}

BOOST_AUTO_TEST_SUITE_END()

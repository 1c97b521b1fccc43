#include <treadle/models/examples.hpp>
#include <treadle/passes/merge_common_subexpressions.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

// Two layers with the same mask share it.
static_assert([] {
  Builder b;
  Node x = b.input("x", f32, {batch, 2, seq, 8});
  x = attention(x, x, x, {.mask = causal});
  x = attention(x, x, x, {.mask = causal});
  b.output("y", x);
  const Graph g = merge_common_subexpressions(b.finish());
  return g.count(op::mask) == 1 && g.count(op::attention) == 2;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(merge_common_subexpressions_pass)

BOOST_AUTO_TEST_CASE(equal_chains_become_one) {
  BOOST_TEST(test::run(merge_common_subexpressions, R"(
%0 = input "x" () : f32[batch, 4]
%1 = scale "a" (%0) {factor=2} : f32[batch, 4]
%2 = softmax (%1) : f32[batch, 4]
%3 = scale "b" (%0) {factor=2} : f32[batch, 4]
%4 = softmax (%3) : f32[batch, 4]
%5 = scale (%0) {factor=3} : f32[batch, 4]
%6 = add (%2, %4) : f32[batch, 4]
%7 = add (%6, %5) : f32[batch, 4]
%8 = output "y" (%7) : f32[batch, 4]
)",
                       2) == R"(%0 = input "x" () : f32[batch, 4]
%1 = scale "a" (%0) {factor=2} : f32[batch, 4]
%2 = softmax (%1) : f32[batch, 4]
%3 = scale (%0) {factor=3} : f32[batch, 4]
%4 = add (%2, %2) : f32[batch, 4]
%5 = add (%4, %3) : f32[batch, 4]
%6 = output "y" (%5) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(what_differs_in_its_output_alone_stays) {
  test::unchanged(merge_common_subexpressions, R"(
%0 = input "x" () : f32[2, 6]
%1 = reshape (%0) : f32[3, 4]
%2 = reshape (%0) : f32[4, 3]
%3 = constant () {value=1} : f32[2]
%4 = constant () {value=1} : f32[3]
%5 = constant () {value=1} : i32[2]
%6 = constant () {data=[1, 2]} : f32[2]
%7 = constant () {data=[1, 3]} : f32[2]
%8 = constant () {data=[1, 2, 3]} : f32[3]
%9 = sinusoidal_positions () {offset=0, length=3, base=10000} : f32[3, 4]
%10 = sinusoidal_positions () {offset=0, length=3, base=10000} : f32[3, 6]
%11 = output "a" (%1) : f32[3, 4]
)");
}

BOOST_AUTO_TEST_CASE(equal_constants_become_one) {
  BOOST_TEST(test::run(merge_common_subexpressions, R"(
%0 = constant () {data=[1, 2]} : f32[2]
%1 = constant () {data=[1, 2]} : f32[2]
%2 = add (%0, %1) : f32[2]
%3 = output "y" (%2) : f32[2]
)",
                       1) == R"(%0 = constant () {data=[1, 2]} : f32[2]
%1 = add (%0, %0) : f32[2]
%2 = output "y" (%1) : f32[2]
)");
}

BOOST_AUTO_TEST_CASE(all_outputs_follow) {
  BOOST_TEST(test::run(merge_common_subexpressions, R"(
%0 = input "x" () : f32[1, 1, 4, 4]
%1 = attention (%0, %0, %0) {scale=1, has_mask=0, has_bias=0, has_sink=0} : f32[1, 1, 4, 4], f32[1, 1, 4]
%2 = attention (%0, %0, %0) {scale=1, has_mask=0, has_bias=0, has_sink=0} : f32[1, 1, 4, 4], f32[1, 1, 4]
%3 = output "y" (%1) : f32[1, 1, 4, 4]
%4 = output "lse" (%2#1) : f32[1, 1, 4]
)",
                       1) == R"(%0 = input "x" () : f32[1, 1, 4, 4]
%1 = attention (%0, %0, %0) {scale=1, has_mask=0, has_bias=0, has_sink=0} : f32[1, 1, 4, 4], f32[1, 1, 4]
%2 = output "y" (%1) : f32[1, 1, 4, 4]
%3 = output "lse" (%1#1) : f32[1, 1, 4]
)");
}

BOOST_AUTO_TEST_CASE(names_that_mean_something_are_kept_apart) {
  test::unchanged(merge_common_subexpressions, R"(
%0 = input "x" () : f32[4]
%1 = input "y" () : f32[4]
%2 = parameter "v" () : f32[4]
%3 = parameter "w" () : f32[4]
%4 = output "a" (%0) : f32[4]
%5 = output "b" (%0) : f32[4]
%6 = scale (%2) {factor=2} : f32[4]
%7 = scale (%3) {factor=2} : f32[4]
)");
}

BOOST_AUTO_TEST_CASE(reads_of_a_state_before_and_after_an_append_are_different) {
  test::unchanged(merge_common_subexpressions, R"(
%0 = input "x" () : f32[1, 4]
%1 = state "s" () : f32[8, 4]
%2 = slice (%1) {axis=0, begin=0, length=1} : f32[1, 4]
%3 = append (%1, %0) {axis=0, offset=0} : f32[1, 4]
%4 = slice (%1) {axis=0, begin=0, length=1} : f32[1, 4]
%5 = add (%2, %4) : f32[1, 4]
%6 = output "y" (%5) : f32[1, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_body_is_not_compared_with_what_stands_around_it) {
  test::unchanged(merge_common_subexpressions, R"(
%0 = input "x" () : f32[4]
%1 = scale (%0) {factor=2} : f32[4]
%4 = repeat "h" (%1) {times=2, carried=1, captured=0, states=0, sides=0} region {
  %2 = region_input () {index=0} : f32[4]
  %3 = scale (%2) {factor=2} : f32[4]
  results (%3)
} : f32[4]
%5 = output "y" (%4) : f32[4]
)");
}

BOOST_AUTO_TEST_CASE(tables_of_iterations_are_compared_by_value) {
  // Same numbers in two tables: one node; other numbers: two.
  const auto slices = [](std::string_view first, std::string_view second) {
    const Graph g = parse_graph(R"(%0 = input "x" () : f32[4, 4]
%5 = repeat "h" (%0) {times=2, carried=1, captured=0, states=0, sides=0} region {
  %1 = region_input () {index=0} : f32[4, 4]
  %2 = concatenate (%1) {axis=)" +
                                std::string(first) + R"(} : f32[4, 4]
  %3 = concatenate (%1) {axis=)" +
                                std::string(second) + R"(} : f32[4, 4]
  %4 = add (%2, %3) : f32[4, 4]
  results (%4)
} : f32[4, 4]
)");
    return merge_common_subexpressions(g).count(op::concatenate);
  };
  BOOST_TEST(slices("[0, 1]", "[0, 1]") == 1);
  BOOST_TEST(slices("[0, 1]", "[1, 1]") == 2);
}

BOOST_AUTO_TEST_SUITE_END()

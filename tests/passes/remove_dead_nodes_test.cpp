#include <treadle/models/examples.hpp>
#include <treadle/passes/remove_dead_nodes.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

constexpr int activations_left = [] {
  Builder b;
  const Node x = b.input("x", f32, {batch, 4});
  activate(x, gelu);
  b.output("y", activate(x, relu));
  return remove_dead_nodes(b.finish()).count(op::activation);
}();
static_assert(activations_left == 1);

}  // namespace

BOOST_AUTO_TEST_SUITE(remove_dead_nodes_pass)

BOOST_AUTO_TEST_CASE(unread_nodes_go_and_inputs_stay) {
  BOOST_TEST(test::run(remove_dead_nodes, R"(
%0 = input "x" () : f32[batch, 4]
%1 = input "unused" () : f32[batch]
%2 = parameter "w" () : f32[4, 4]
%3 = linear "dead" (%0, %2) {has_bias=0, has_residual=0, function=none} : f32[batch, 4]
%4 = scale (%3) {factor=2} : f32[batch, 4]
%5 = activation (%0) {function=relu} : f32[batch, 4]
%6 = output "y" (%5) : f32[batch, 4]
)",
                       3) == R"(%0 = input "x" () : f32[batch, 4]
%1 = input "unused" () : f32[batch]
%2 = activation (%0) {function=relu} : f32[batch, 4]
%3 = output "y" (%2) : f32[batch, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_state_that_is_appended_to_stays) {
  test::unchanged(remove_dead_nodes, R"(
%0 = input "x" () : f32[2, n, 4]
%1 = input "old" () : f32[past]
%2 = state "cache" () : f32[2, 16, 4]
%3 = append (%2, %0) {axis=1, offset=past} : f32[2, n + past, 4]
%4 = output "y" (%0) : f32[2, n, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_repeat_loses_unread_sides_and_captures) {
  BOOST_TEST(test::run(remove_dead_nodes, R"(
%0 = input "x" () : f32[4]
%1 = input "a" () : f32[4]
%2 = input "b" () : f32[4]
%3 = scale (%2) {factor=3} : f32[4]
%10 = repeat "h" (%0, %1, %3) {times=2, carried=1, captured=2, states=0, sides=2} region {
  %4 = region_input () {index=0} : f32[4]
  %5 = region_input () {index=1} : f32[4]
  %6 = region_input () {index=2} : f32[4]
  %7 = add (%4, %6) : f32[4]
  %8 = scale (%5) {factor=2} : f32[4]
  %9 = scale (%6) {factor=5} : f32[4]
  results (%7, %8, %9)
} : f32[4], f32[2, 4], f32[2, 4]
%11 = output "y" (%10) : f32[4]
%12 = output "side" (%10#2) : f32[2, 4]
)",
                       3) == R"(%0 = input "x" () : f32[4]
%1 = input "a" () : f32[4]
%2 = input "b" () : f32[4]
%3 = scale (%2) {factor=3} : f32[4]
%8 = repeat "h" (%0, %3) {times=2, carried=1, captured=1, states=0, sides=1} region {
  %4 = region_input () {index=0} : f32[4]
  %5 = region_input () {index=1} : f32[4]
  %6 = add (%4, %5) : f32[4]
  %7 = scale (%5) {factor=5} : f32[4]
  results (%6, %7)
} : f32[4], f32[2, 4]
%9 = output "y" (%8) : f32[4]
%10 = output "side" (%8#1) : f32[2, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_dead_repeat_goes_and_regions_are_renumbered) {
  const std::string source = R"(
%0 = input "x" () : f32[4]
%3 = repeat "dead" (%0) {times=2, carried=1, captured=0, states=0, sides=0} region {
  %1 = region_input () {index=0} : f32[4]
  %2 = scale (%1) {factor=2} : f32[4]
  results (%2)
} : f32[4]
%6 = repeat "alive" (%0) {times=2, carried=1, captured=0, states=0, sides=0} region {
  %4 = region_input () {index=0} : f32[4]
  %5 = scale (%4) {factor=3} : f32[4]
  results (%5)
} : f32[4]
%7 = output "y" (%6) : f32[4]
)";
  BOOST_TEST(remove_dead_nodes(parse_graph(source)).regions.size() == 2u);
  BOOST_TEST(test::run(remove_dead_nodes, source, 3) == R"(%0 = input "x" () : f32[4]
%3 = repeat "alive" (%0) {times=2, carried=1, captured=0, states=0, sides=0} region {
  %1 = region_input () {index=0} : f32[4]
  %2 = scale (%1) {factor=3} : f32[4]
  results (%2)
} : f32[4]
%4 = output "y" (%3) : f32[4]
)");
}

BOOST_AUTO_TEST_CASE(a_repeat_without_readers_stays_for_its_state) {
  const Graph g = parse_graph(R"(
%0 = input "x" () : f32[1, 4]
%1 = state "s" () : f32[2, 8, 4]
%5 = repeat "h" (%0, %1) {times=2, carried=1, captured=0, states=1, sides=0} region {
  %2 = region_input () {index=0} : f32[1, 4]
  %3 = region_input () {index=1} : f32[8, 4]
  %4 = append (%3, %2) {axis=0, offset=0} : f32[1, 4]
  results (%2, %3)
} : f32[1, 4], f32[2, 8, 4]
%6 = output "y" (%0) : f32[1, 4]
)");
  BOOST_TEST(!verify(g));
  BOOST_TEST(remove_dead_nodes(g).count(op::append) == 1);
}

BOOST_AUTO_TEST_SUITE_END()

#include <treadle/models/examples.hpp>
#include <treadle/ops/constant.hpp>
#include <treadle/passes/fold_constants.hpp>

#include "support.hpp"

#include <cmath>

using namespace treadle;

namespace {

// A model with a fixed number of positions: its table is a constant when the compiler is done.
static_assert([] {
  Builder b;
  const Node x = b.input("x", f32, {batch, 4, 8});
  b.output("y", x + scale(x, 2) + sinusoidal_positions({.offset = 3}));
  const Graph g = fold_constants(b.finish());
  return !verify(g) && g.count(op::constant) == 1 && g.count(op::sinusoidal_positions) == 0 && g.count(op::scale) == 1;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(fold_constants_pass)

BOOST_AUTO_TEST_CASE(arithmetic_on_constants) {
  BOOST_TEST(test::run(fold_constants, R"(
%0 = constant () {data=[1, 2]} : f32[2, 1]
%1 = constant () {data=[10, 20, 30]} : f32[3]
%2 = add (%0, %1) : f32[2, 3]
%3 = scale (%2) {factor=0.5} : f32[2, 3]
%4 = constant () {value=3} : f32[2, 3]
%5 = multiply (%4, %3) : f32[2, 3]
%6 = output "y" (%5) : f32[2, 3]
)",
                       3) == R"(%0 = constant () {data=[16.5, 31.5, 46.5, 18, 33, 48]} : f32[2, 3]
%1 = output "y" (%0) : f32[2, 3]
)");
}

BOOST_AUTO_TEST_CASE(one_number_for_all_elements_stays_one_whatever_the_shape) {
  BOOST_TEST(test::run(fold_constants, R"(
%0 = constant () {value=2} : f32[batch, seq]
%1 = constant () {value=5} : f32[1]
%2 = multiply (%0, %1) : f32[batch, seq]
%3 = slice (%2) {axis=1, begin=0, length=1} : f32[batch, 1]
%4 = output "y" (%3) : f32[batch, 1]
)",
                       2) == R"(%0 = constant () {value=10} : f32[batch, 1]
%1 = output "y" (%0) : f32[batch, 1]
)");
}

BOOST_AUTO_TEST_CASE(positions_are_the_formula_to_the_last_digits) {
  const Graph g =
      fold_constants(parse_graph(R"(%0 = sinusoidal_positions () {offset=977, length=16, base=10000} : f32[16, 16]
%1 = output "y" (%0) : f32[16, 16]
)"));
  BOOST_REQUIRE(g.count(op::constant) == 1);
  for (std::int64_t p = 0; p < 16; ++p)
    for (std::int64_t c = 0; c < 16; ++c) {
      const double angle = static_cast<double>(977 + p) / std::pow(10000.0, static_cast<double>(c - c % 2) / 16.0);
      const double got = std::bit_cast<double>(g.tables[static_cast<std::size_t>(16 * p + c)]);
      BOOST_TEST(std::abs(got - (c % 2 == 0 ? std::sin(angle) : std::cos(angle))) < 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(elementary_functions) {
  for (const double x : {1e-6, 0.3, 0.75, 1.0, 1.5, 2.0, 10000.0, 5e5})
    BOOST_TEST(std::abs(folding::logarithm(x) - std::log(x)) <= 4e-15 * std::max(1.0, std::abs(std::log(x))));
  for (double x = -12; x < 12; x += 0.0625)
    BOOST_TEST(std::abs(folding::exponential(x) - std::exp(x)) <= 1e-15 * std::exp(x));
  for (double x = -3; x < 1e5; x = x * 1.01 + 0.37) {
    BOOST_TEST(std::abs(folding::sine(x, false) - std::sin(x)) <= 1e-15);
    BOOST_TEST(std::abs(folding::sine(x, true) - std::cos(x)) <= 1e-15);
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_known_or_not_small_stays) {
  const auto stays = [](const std::string& node, const std::string& type) {
    test::unchanged(fold_constants, "%0 = " + node + " : " + type + "\n%1 = output \"y\" (%0) : " + type + "\n");
  };
  stays("sinusoidal_positions () {offset=0, length=seq, base=10000}", "f32[seq, 8]");
  stays("sinusoidal_positions () {offset=past, length=4, base=10000}", "f32[4, 8]");
  stays("sinusoidal_positions () {offset=0, length=33, base=10000}", "f32[33, 8]");  // 264 numbers
  test::unchanged(fold_constants, R"(%0 = constant () {data=[1, 2]} : f32[2]
%1 = parameter "p" () : f32[2]
%2 = add (%0, %1) : f32[2]
%3 = output "y" (%2) : f32[2]
)");
  // 256 numbers each: the third would pass the limit of a graph's tables.
  std::string text;
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(2 * i), m = std::to_string(2 * i + 1);
    text += "%" + n + " = sinusoidal_positions () {offset=" + n + ", length=32, base=10000} : f32[32, 8]\n%" + m +
            " = output \"y" + n + "\" (%" + n + ") : f32[32, 8]\n";
  }
  BOOST_TEST(fold_constants(parse_graph(text)).count(op::constant) == 2);
}

BOOST_AUTO_TEST_SUITE_END()

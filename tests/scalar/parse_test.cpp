// Text that people write by hand, and text that is wrong.

#include <treadle/graph/scalar/evaluate.hpp>
#include <treadle/graph/scalar/parse.hpp>
#include <treadle/graph/scalar/print.hpp>

#include <boost/test/unit_test.hpp>

using namespace treadle;
using namespace treadle::scalar;

namespace {

std::string normal(std::string_view text) {
  Pool pool;
  const Parsed p = parse(pool, text);
  return p ? print(pool, p.root) : p.error.what + " @" + std::to_string(p.error.position);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(parsing)

BOOST_AUTO_TEST_CASE(precedence_is_that_of_the_language) {
  BOOST_TEST(normal("q>=k&q-k<=256") == "(k <= q) & ((q - k) <= 256)");
  BOOST_TEST(normal("q - k - 1 < 2 | k < 3 & q < 3") == "(((q - k) - 1) < 2) | ((q < 3) & (k < 3))");
  BOOST_TEST(normal("q + k * 2 % 3 == 0") == "(q + ((k * 2) % 3)) == 0");
  BOOST_TEST(normal("-3 < -q") == "-3 < -q");
  BOOST_TEST(normal("score + 2 * q") == "score + (q * 2)");  // an integer product is exact: nothing to fuse
  BOOST_TEST(normal("score + 2.0 * q") == "fma(q, 2.0, score)");
  BOOST_TEST(normal("!(k <= q)") == "q < k");
  BOOST_TEST(normal("1 + 2 * 3") == "7");
  BOOST_TEST(normal("score * 1e-3") == "score * 0.001");
  BOOST_TEST(normal("lookup < i32 > (\"doc ids\", q) == 3") == "lookup<i32>(\"doc ids\", q) == 3");
}

BOOST_AUTO_TEST_CASE(errors_say_what_and_where) {
  BOOST_TEST(normal("k <= ") == "expected a value @5");
  BOOST_TEST(normal("k <= z") == "'z' is not a name in expressions @5");
  BOOST_TEST(normal("(k <= q") == "expected ')' @7");
  BOOST_TEST(normal("k <= q q") == "expected the end of the expression @7");
  BOOST_TEST(normal("k && q").substr(0, 23) == "write & and |, once @3");
  BOOST_TEST(normal("k & q").substr(0, 29) == "& and | need two conditions @");
  BOOST_TEST(normal("i") == "i stands inside sum @1");
  BOOST_TEST(normal("99999999999999999999") == "'99999999999999999999' does not fit an integer of 64 bits @0");
  BOOST_TEST(normal("1.2.3") == "'1.2.3' is not a number @0");
  BOOST_TEST(normal("score % 2").substr(0, 21) == "% needs two integers ");
  BOOST_TEST(normal("lookup(\"x, q)") == "the name of a table ends with a quote @8");
  BOOST_TEST(normal("sum(sum(q[i]))").substr(0, 40) == "a sum inside a sum is not supported @8");
  BOOST_TEST(normal(std::string(5000, '(') + "q").substr(0, 33) == "more than 200 levels of nesting @");
  BOOST_TEST(normal(std::string(5000, '-') + "q").substr(0, 33) == "more than 200 levels of nesting @");
}

BOOST_AUTO_TEST_CASE(a_type_may_be_asked_for) {
  Pool pool;
  const Parsed number = parse(pool, "q", Type::number);
  BOOST_TEST((pool[number.root].op == Op::number));
  BOOST_TEST(parse(pool, "k <= q", Type::number).error.what == "expected a number, not a condition");
  BOOST_TEST(parse(pool, "q", Type::boolean).error.what == "expected a condition");
}

BOOST_AUTO_TEST_CASE(an_error_leaves_the_pool_alone) {
  Pool pool;
  const std::size_t size = pool.nodes.size();
  BOOST_TEST(!parse(pool, "k <= q & "));
  BOOST_TEST(pool.nodes.size() == size);
}

BOOST_AUTO_TEST_CASE(sums_run_over_the_features) {
  Pool pool;
  const Parsed p = parse(pool, "sum(lookup(\"v\", i) * tanh(q[i] + k[i])) + score");
  BOOST_REQUIRE(p);
  float v[] = {1, 2, 3}, q[] = {0.5f, -1, 2}, k[] = {1, 1, -1};
  const std::int64_t three[] = {3};
  const Table tables[] = {{"v", dense_view(v, f32, three)}};
  const double got =
      evaluate(pool, p.root,
               {.score = 2, .tables = tables, .q_row = dense_view(q, f32, three), .k_row = dense_view(k, f32, three)});
  BOOST_TEST(got == std::tanh(1.5) + 2 * std::tanh(0.0) + 3 * std::tanh(1.0) + 2, boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_SUITE_END()

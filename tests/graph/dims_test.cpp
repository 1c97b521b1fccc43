// Dim expressions: canonical form, evaluation, division.

#include <treadle/graph/builder.hpp>

#include <boost/test/unit_test.hpp>

using namespace treadle;

namespace {

// A dim and its number when batch = 3, seq = 10.
struct Pool {
  Dims dims;
  Strings strings;
  Dim operator()(const DimSpec& d) { return d.intern(dims, strings); }
  std::int64_t number(Dim d) const {
    std::vector<std::int64_t> values(dims.atoms.size(), 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (dims.atoms[i].kind != AtomKind::symbol) continue;
      values[i] = strings[dims.atoms[i].name] == "batch" ? 3 : 10;
    }
    return dims.view().evaluate(d, values);
  }
};

constexpr bool equal_forms_are_one() {
  Dims d;
  Strings s;
  const auto in = [&](const DimSpec& x) { return x.intern(d, s); };
  return in(batch * seq + 1) == in(1 + seq * batch) && in(seq + seq) == in(2 * seq) && in(seq - seq) == in(0) &&
         in((seq + 1) * (seq + 1)) == in(seq * seq + 2 * seq + 1) && in(min(seq, batch)) == in(min(batch, seq)) &&
         in(max(seq, seq)) == in(seq) && in(ceil_div(4 * seq, 4)) == in(seq) && in(ceil_div(7, 2)) == in(4) &&
         in(seq) != in(batch) && in(ceil_div(seq, 4)) != in(ceil_div(seq, 8));
}
static_assert(equal_forms_are_one());

}  // namespace

BOOST_AUTO_TEST_SUITE(dims)

BOOST_AUTO_TEST_CASE(evaluation_follows_the_numbers) {
  Pool p;
  BOOST_TEST(p.number(p(batch * seq + 1)) == 31);
  BOOST_TEST(p.number(p(ceil_div(seq, 4))) == 3);
  BOOST_TEST(p.number(p(ceil_div(seq + 2, 4) * 5)) == 15);
  BOOST_TEST(p.number(p(min(batch, seq) + max(batch, seq))) == 13);
  BOOST_TEST(p.number(p((seq - batch) * (seq + batch))) == 91);
  BOOST_TEST(p.number(p(0 * seq)) == 0);
}

BOOST_AUTO_TEST_CASE(division_only_where_every_coefficient_divides) {
  Pool p;
  BOOST_TEST(p.dims.divisible(p(6 * seq + 12), 3));
  BOOST_TEST(p.dims.divide(p(6 * seq + 12), 3) == p(2 * seq + 4));
  BOOST_TEST(!p.dims.divisible(p(6 * seq + 1), 3));
  BOOST_TEST(!p.dims.divisible(p(seq), 0));
}

BOOST_AUTO_TEST_CASE(dims_print_as_they_are_written) {
  Graph g;
  const auto text = [&](const DimSpec& d) {
    const Dim x = d.intern(g.dims, g.strings);
    const Text t = dim_text(g, x);
    return std::string(t.view());
  };
  BOOST_TEST(text(2 * batch * seq + 1) == "2*batch*seq + 1");
  BOOST_TEST(text(ceil_div(seq, 4)) == "ceil_div(seq, 4)");
  BOOST_TEST(text(0) == "0");
}

BOOST_AUTO_TEST_SUITE_END()

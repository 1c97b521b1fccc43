// Tables that are looked up: too short ones are refused before anything runs, with the name, what was got and what is
// needed; what may lie outside by the documented rule reads 0.

#include "support.hpp"

#include <treadle/graph/mask/conventions.hpp>
#include <treadle/ops/rules.hpp>

#include <type_traits>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t heads = 4, length = 6;

/// What a model with this table says when it is bound and run, on both kinds of backends.
std::string said(const AttentionOptions& options, DType type, std::vector<std::int64_t> shape,
                 const std::vector<std::int32_t>& entries = {}) {
  std::string messages[2];
  for (int i = 0; i < 2; ++i)
    messages[i] = error_of([&] {
      Builder g;
      const Node q = g.input("q", f32, {1, heads, length, 4}), k = g.input("k", f32, {1, heads, length + 2, 4});
      if (shape.size() == 1) g.input("t", type, {shape[0]});
      if (shape.size() == 2) g.input("t", type, {shape[0], shape[1]});
      g.output("y", attention(q, k, k, options));
      const Graph graph = g.finish();
      BOOST_REQUIRE(!graph.error);
      BoundModel model(graph, {}, {.backend = i == 0 ? "simd" : "reference"});
      Tensors in = inputs_of(graph, {}, 1);
      for (std::size_t e = 0; e < entries.size(); ++e) in.at("t").view.as<std::int32_t>()[e] = entries[e];
      const Tensors out = outputs_of(graph, {});
      model.run(named(in), named(out));
    });
  // The vector backends name the node in front.
  BOOST_TEST(messages[0].substr(std::min(messages[0].size(), messages[0].find("table"))) ==
             messages[1].substr(std::min(messages[1].size(), messages[1].find("table"))));
  const std::size_t at = messages[0].find("table");
  return at == std::string::npos ? messages[0] : messages[0].substr(at);
}
std::string said(const Mask& m, DType type, std::vector<std::int64_t> shape,
                 const std::vector<std::int32_t>& entries = {}) {
  return said(AttentionOptions{.mask = m}, type, shape, entries);
}
template <class F>
std::string said_of_score(F f, std::vector<std::int64_t> shape) {
  return said(AttentionOptions{.score = score_mod(f)}, f32, shape);
}

/// Whether the compiler can evaluate it: what is refused at run time does not compile as a constant.
template <auto F>
concept compiles = requires { typename std::bool_constant<(F(), true)>; };
static_assert(compiles<[] { return window(-1, 0); }> && !compiles<[] { return window(-2, 0); }>);
static_assert(compiles<[] { return block_list("t", 8, 2); }> && !compiles<[] { return block_list("t", 0, 2); }>);
static_assert(!compiles<[] { return conventions::longformer_attention_window(5); }>);

}  // namespace

BOOST_AUTO_TEST_SUITE(lookups_in_models)

BOOST_AUTO_TEST_CASE(tables_that_are_too_short_are_refused) {
  BOOST_TEST(said_of_score([](auto s, auto, auto h, auto, auto) { return s + lookup("t", h); }, {3}) ==
             "table 't' has 3 entries; the index `h` of its lookup reaches 3, so 4 are needed");
  BOOST_TEST(
      said_of_score([](auto s, auto, auto h, auto q, auto k) { return s + lookup("t", h, abs(q - k)); }, {4, 7}) ==
      "table 't' has 7 columns; the index `abs(q - k)` of its lookup reaches 7, so 8 are needed");
  BOOST_TEST(said_of_score([](auto s, auto, auto h, auto q, auto k) { return s + lookup("t", h, abs(q - k)); },
                           {2, 9}) == "table 't' has 2 rows; the index `h` of its lookup reaches 3, so 4 are needed");
  BOOST_TEST(said_of_score([](auto s, auto, auto, auto q, auto k) { return s + lookup("t", q - k); }, {20}) ==
             "table 't' has 20 entries; the index `q - k` of its lookup reaches -7, and 0 is the first");
  BOOST_TEST(said_of_score([](auto, auto, auto, auto q,
                              auto k) { return sum(q, [&](auto i) { return lookup("t", i) * (q[i] + k[i]); }); },
                           {3}) == "table 't' has 3 entries; the index `i` of its lookup reaches 3, so 4 are needed");
  BOOST_TEST(said(documents("t"), i32, {length}) ==
             "table 't' has 6 entries; the index `k` of its lookup reaches 7, so 8 are needed");
  BOOST_TEST(said(block_table("t", 4), i32, {2, 1}) ==
             "table 't' has 1 columns; the index `k / 4` of its lookup reaches 1, so 2 are needed");
  BOOST_TEST(
      said(block_list("t", 4, 2, Blocks::per_head), i32, {7, 2}) ==
      "table 't' has 7 rows; the index `(h * ((q_len + 3) / 4)) + (q / 4)` of its lookup reaches 7, so 8 are needed");
}

BOOST_AUTO_TEST_CASE(what_fits_or_is_guarded_is_accepted) {
  BOOST_TEST(
      said_of_score([](auto s, auto, auto h, auto q, auto k) { return s + lookup("t", h, abs(q - k)); }, {4, 8}) == "");
  // Clamped, guarded, or an index that only interval arithmetic takes outside.
  BOOST_TEST(said_of_score(
                 [](auto s, auto, auto, auto q, auto k) { return s + lookup("t", min(max(q - k + 2, 0), 4)); }, {5}) ==
             "");
  BOOST_TEST(said_of_score([](auto s, auto, auto, auto q,
                              auto k) { return where(abs(q - k) < 3, s + lookup("t", q - k + 2), s); },
                           {5}) == "");
  BOOST_TEST(said_of_score([](auto s, auto, auto, auto, auto k) { return s + lookup("t", k - k / 2 * 2); }, {2}) == "");
  BOOST_TEST(said(documents("t"), i32, {length + 2}) == "");
}

BOOST_AUTO_TEST_CASE(cumulative_lengths_must_ascend) {
  BOOST_TEST(said(cumulative_lengths("t"), i32, {3}, {0, 3, 6}) == "");
  BOOST_TEST(said(cumulative_lengths("t"), i32, {3}, {0, 5, 4}) ==
             "table 't' does not ascend; searchsorted needs entries in ascending order");
}

BOOST_AUTO_TEST_CASE(a_sum_in_a_mask_is_refused) {
  Builder g;
  const Node q = g.input("q", f32, {1, heads, length, 4});
  const auto near =
      mask_mod([](auto, auto, auto i, auto j) { return sum(i, [&](auto f) { return i[f] * j[f]; }) > 0; });
  g.output("y", attention(q, q, q, {.mask = near}));
  const Graph graph = g.finish();
  BOOST_TEST(std::string(graph.strings[graph.error.got]) == "a sum over features");
  BOOST_TEST(std::string(graph.strings[graph.error.expected]) == "a sum in a score function");
}

BOOST_AUTO_TEST_SUITE_END()

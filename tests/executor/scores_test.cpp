// Score functions and biases by name, against tables of the same numbers, on every ISA.

#include "op_check.hpp"

#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

const DimSpec keys = dim("keys");

struct Heads {
  Node q, k, v;
};
Heads given(Builder& b, std::int64_t heads) {
  return {b.input("q", f32, {2, heads, n, 8}), b.input("k", f32, {2, heads, keys, 8}),
          b.input("v", f32, {2, heads, keys, 5})};
}

const Lengths some_lengths[] = {{{"n", 1}, {"keys", 1}},   {{"n", 5}, {"keys", 3}},    {{"n", 17}, {"keys", 33}},
                                {{"n", 50}, {"keys", 50}}, {{"n", 33}, {"keys", 200}}, {{"n", 0}, {"keys", 3}},
                                {{"n", 3}, {"keys", 0}}};

double number(std::size_t i) { return std::sin(static_cast<double>(i) * 1.7); }

/// Runs g where the f32 input `name` holds `table`, in float64.
Results with_table(const Graph& g, const Lengths& dims, const std::string& name, const std::vector<double>& table) {
  BoundModel model(g, {}, {.backend = "reference", .float64 = true});
  model.bind_dims(dims);
  Tensors in = inputs_of(g, dims, 7), out = outputs_of(g, dims, false, f64);
  float* to = in.at(name).view.as<float>();
  for (std::size_t i = 0; i < table.size(); ++i) to[i] = static_cast<float>(table[i]);
  model.run(named(in), named(out));
  return values(out);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scores)

BOOST_AUTO_TEST_CASE(alibi_of_every_head_count) {
  for (const std::int64_t heads : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 25}) {
    Builder b;
    const auto [q, k, v] = given(b, heads);
    b.input("slopes", f32, {heads});
    b.output("named", attention(q, k, v, {.score = alibi(heads)}));
    b.output("table", attention(q, k, v, {.score = alibi("slopes")}));
    b.output("left", attention(q, k, v, {.score = alibi(heads, mask::Alignment::top_left)}));
    const Graph g = b.finish();
    BOOST_TEST_CONTEXT(heads << " heads") {
      Results r = with_table(g, {{"n", 9}, {"keys", 14}}, "slopes", alibi_slopes(heads));
      BOOST_TEST(difference({{"x", r["named"]}}, {{"x", r["table"]}}) < 1e-6);  // the table is float32
      BOOST_TEST(difference({{"x", r["named"]}}, {{"x", r["left"]}}) > 1e-3);
      check(g, {{"n", 9}, {"keys", 14}});
    }
  }
}

BOOST_AUTO_TEST_CASE(decays_caps_and_tables_of_distances) {
  Builder b;
  const auto [q, k, v] = given(b, 3);
  b.input("distances", f32, {3, 6});
  b.output("decay", attention(q, k, v, {.mask = causal, .score = distance_decay(0.25)}));
  b.output("table", attention(q, k, v, {.score = distance_bias("distances", 6)}));
  b.output("capped", attention(q, k, v, {.score = softcap(0.5), .scale = 2.0}));
  b.output("option", attention(q, k, v, {.scale = 2.0, .softcap = 0.5}));
  b.output("both", attention(q, k, v, {.score = distance_decay(0.25), .scale = 2.0, .softcap = 0.5}));
  b.output("composed", attention(q, k, v, {.score = softcap(0.5) >> distance_decay(0.25), .scale = 2.0}));
  b.output("other_way", attention(q, k, v, {.score = distance_decay(0.25) >> softcap(0.5), .scale = 2.0}));
  const Graph g = b.finish();
  for (const Lengths& dims : some_lengths) check(g, dims);
  Results r = oracle(g, {}, some_lengths[2], 4);
  BOOST_TEST(r["capped"] == r["option"], boost::test_tools::per_element());
  BOOST_TEST(r["both"] == r["composed"], boost::test_tools::per_element());
  BOOST_TEST(difference({{"x", r["both"]}}, {{"x", r["other_way"]}}) > 1e-3);
}

constexpr auto doubled = scalar::score_mod([](auto s, auto, auto, auto, auto) { return 2.0 * s; });
constexpr auto bounded = scalar::score_mod(
    [](auto s, auto, auto h, auto q, auto k) { return max(s, scalar::lookup("table", h) * (q - k)) - abs(s); });
// The compiler composes them too, and what comes out is what would have been written.
static_assert((doubled >> bounded) == scalar::score_mod([](auto s, auto, auto h, auto q, auto k) {
                return max(2.0 * s, scalar::lookup("table", h) * (q - k)) - abs(2.0 * s);
              }));
static_assert((doubled >> doubled >> doubled).node_count <= 7);

BOOST_AUTO_TEST_CASE(t5_biases) {
  for (const bool both : {true, false})
    for (const std::int64_t buckets : {8, 32}) {
      Builder b;
      const auto [q, k, v] = given(b, 3);
      const Node table = b.input("table", f32, {buckets, 3}), full = b.input("full", f32, {3, n, keys});
      const Node bias = relative_bias(table, n, keys, {.max_distance = 40, .bidirectional = both});
      b.output("bias", bias);
      b.output("y", attention(q, k, v, {.mask = causal, .bias = bias, .scale = 1.0}));
      b.output("written", matmul(softmax(add(matmul(q, transpose(k)), bias)), v));
      b.output("left", relative_bias(table, n, keys, {.max_distance = 40, .bidirectional = both, .top_left = true}));
      b.output("full", scale(full, 1));
      const Graph g = b.finish();
      BOOST_REQUIRE(!g.error);
      for (const Lengths& dims : some_lengths) {
        check(g, dims);
        check(optimise(g), dims);
      }
      // Number by number, from the buckets of position_tables.hpp.
      std::vector<double> numbers(static_cast<std::size_t>(buckets * 3));
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(number(i));
      const std::int64_t rows = 9, columns = 60;
      Results r = with_table(g, {{"n", rows}, {"keys", columns}}, "table", numbers);
      for (std::int64_t h = 0; h < 3; ++h)
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < columns; ++j) {
            const auto at = static_cast<std::size_t>((h * rows + i) * columns + j);
            const auto want = [&](std::int64_t relative) {
              return numbers[static_cast<std::size_t>(relative_bucket(relative, {buckets, 40, both}) * 3 + h)];
            };
            BOOST_TEST(r["bias"][at] == want(j - (i + columns - rows)));
            BOOST_TEST(r["left"][at] == want(j - i));
          }
    }
}

BOOST_AUTO_TEST_CASE(t5_bias_is_a_parameter_and_takes_no_square_of_the_length) {
  Builder b;
  const Node q = b.input("q", f32, {1, 2, n, 4}), k = b.input("k", f32, {1, 2, n, 4}),
             v = b.input("v", f32, {1, 2, n, 4});
  const Node bias = t5_bias("relative_attention_bias", b, n, n, {.heads = 2, .bidirectional = false});
  b.output("y", attention(q, k, v, {.mask = causal & window(31, 0), .bias = bias, .scale = 1.0}));
  const Graph g = b.finish();
  const Parameters p = Parameters::random(g, 3);
  BOOST_TEST(p.contains("relative_attention_bias.weight"));
  check(g, {{"n", 40}});
  BoundModel model(g, p, {.backend = "simd"});
  for (const std::int64_t length : {1 << 10, 1 << 20}) {
    model.bind_dims({{"n", length}});
    BOOST_TEST(static_cast<double>(model.planned_bytes()) < 1e6 + 32.0 * static_cast<double>(length));
  }
}

BOOST_AUTO_TEST_CASE(refusals) {
  BOOST_CHECK_THROW(alibi(0), std::invalid_argument);
  BOOST_CHECK_THROW(softcap(0.0), std::invalid_argument);
  BOOST_CHECK_THROW(softcap(NAN), std::invalid_argument);
  BOOST_CHECK_THROW(distance_decay(INFINITY), std::invalid_argument);
  BOOST_CHECK_THROW(distance_bias("t", 0), std::invalid_argument);
  const auto mistake = [](std::int64_t buckets, RelativeBiasOptions o) {
    Builder b;
    b.output("y", relative_bias(b.input("table", f32, {buckets, 2}), 4, 5, o));
    const Graph g = b.finish();
    return g.error ? std::string(g.strings[g.error.got]) + " | " + std::string(g.strings[g.error.expected]) : "";
  };
  BOOST_TEST(mistake(6, {}) == "6 buckets | a multiple of 4");
  BOOST_TEST(mistake(7, {.bidirectional = false}) == "7 buckets | a multiple of 2");
  BOOST_TEST(mistake(32, {.max_distance = 8}) == "max_distance 8 | more than 8");
  BOOST_TEST(mistake(32, {.max_distance = 16, .bidirectional = false}) == "max_distance 16 | more than 16");
  BOOST_TEST(mistake(32, {}) == "");
}

BOOST_AUTO_TEST_SUITE_END()

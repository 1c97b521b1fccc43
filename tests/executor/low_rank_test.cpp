// Attention through fewer keys: pooled, Linformer, Nyström. Each against its own formula in float64, then every backend
// and ISA.

#include "plain_variants.hpp"

#include <treadle/ops/linformer.hpp>
#include <treadle/ops/nystrom.hpp>
#include <treadle/ops/pooled_attention.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t head_dim = 9, value_dim = 5;
const double usual = 1 / std::sqrt(static_cast<double>(head_dim));
const DimSpec m = dim("m");

struct Given {
  Builder g;
  Node q, k, v;
  explicit Given(std::int64_t kv_heads = 2, const DimSpec& keys = m)
      : q(g.input("q", f32, {2, 2, n, head_dim})),
        k(g.input("k", f32, {2, kv_heads, keys, head_dim})),
        v(g.input("v", f32, {2, kv_heads, keys, value_dim})) {}
  Graph with(Node y) {
    g.output("y", y);
    return g.finish();
  }
};

struct Cubes {
  Cube q, k, v;
  Cubes(const Graph& g, const Lengths& dims) {
    const Tensors in = inputs_of(g, dims, 21);
    q = cube_of(in, "q");
    k = cube_of(in, "k");
    v = cube_of(in, "v");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(low_rank)

BOOST_AUTO_TEST_CASE(pooled_over_any_ratio) {
  for (const std::int64_t length : {0, 1, 7, 16, 33})
    for (const std::int64_t ratio : {1, 4, 50})
      for (const bool largest : {false, true})
        BOOST_TEST_CONTEXT(length << " keys, ratio " << ratio << (largest ? ", max" : ", mean")) {
          Given x(1);  // one key head for both query heads
          const Graph g = x.with(pooled_attention(
              x.q, x.k, x.v, {.ratio = ratio, .pool = largest ? reduction::max : reduction::mean, .scale = 0.7}));
          const Lengths dims{{"n", 5}, {"m", length}};
          const Cubes c(g, dims);
          check_plain(g, dims,
                      plain_attention(c.q, plain_runs(c.k, ratio, largest), plain_runs(c.v, ratio, largest), 0.7,
                                      sees_everything));
        }
}

BOOST_AUTO_TEST_CASE(pooled_sees_whole_runs_of_the_past) {
  for (const std::int64_t length : {1, 3, 4, 5, 17, 70})
    for (const std::int64_t ratio : {1, 4}) {
      Given x(2, n);
      const Graph g = x.with(pooled_attention(x.q, x.k, x.v, {.ratio = ratio, .causal = true}));
      const Lengths dims{{"n", length}};
      const Cubes c(g, dims);
      check_plain(g, dims,
                  plain_attention(c.q, plain_runs(c.k, ratio), plain_runs(c.v, ratio), usual,
                                  [&](auto, auto, auto i, auto j) { return j * ratio + ratio - 1 <= i; }));
    }
}

BOOST_AUTO_TEST_CASE(pooled_ratio_one_is_attention) {
  Given x(2, n);
  x.g.output("attention", attention(x.q, x.k, x.v, {.mask = causal}));
  const Graph g = x.with(pooled_attention(x.q, x.k, x.v, {.ratio = 1, .causal = true}));
  const Results r = run(g, {}, {{"n", 40}}, {.backend = "simd"}, 3);
  BOOST_TEST(difference({{"y", r.at("y")}}, {{"y", r.at("attention")}}) < 1e-6);
}

BOOST_AUTO_TEST_CASE(linformer_takes_the_columns_that_there_are_keys_for) {
  constexpr std::int64_t least = 6, most = 40;
  for (const bool shared : {false, true})
    for (const std::int64_t length : {0, 1, 15, 16, 17, 40}) {
      Given x(1);
      const Graph g =
          x.with(linformer_attention("low", x.q, x.k, x.v, {.length = least, .max_length = most, .shared = shared}));
      const Lengths dims{{"n", 7}, {"m", length}};
      const Cubes c(g, dims);
      const Parameters parameters = Parameters::random(g, 5, values_of(dims));
      BOOST_TEST(parameters.contains("low.key_projection"));
      BOOST_TEST(parameters.contains("low.value_projection") == !shared);
      const auto project = [&](const char* name, const Cube& rows) {
        return plain_length_projection(parameters, name, rows);
      };
      BOOST_TEST_CONTEXT(length << " keys") {
        check_plain(g, dims,
                    plain_attention(c.q, project("low.key_projection", c.k),
                                    project(shared ? "low.key_projection" : "low.value_projection", c.v), usual,
                                    sees_everything),
                    1e-5, &parameters);
      }
    }
}

BOOST_AUTO_TEST_CASE(linformer_layers_may_share_a_matrix_of_each_head) {
  Given x;
  const Node e = x.g.parameter("e", {x.g.dim_number(2), x.g.dim_number(4), x.g.dim_number(30)});
  const LinformerOptions o{.length = 4, .max_length = 30, .key_projection = e, .value_projection = e};
  x.g.output("first", linformer_attention("a", x.q, x.k, x.v, o));
  const Graph g = x.with(linformer_attention("b", x.q, x.k, x.v, o));
  BOOST_REQUIRE(!g.error);
  BOOST_TEST(g.view().count(op::parameter) == 1);
  const Results r = run(g, Parameters::random(g, 2), {{"n", 5}, {"m", 20}}, {.backend = "simd"}, 3);
  BOOST_TEST(r.at("y") == r.at("first"), boost::test_tools::per_element());
  check(g, {{"n", 5}, {"m", 20}});
}

BOOST_AUTO_TEST_CASE(nystrom_by_its_formula) {
  for (const std::int64_t length : {1, 6, 16, 17, 33})
    for (const std::int64_t landmarks : {1, 4, 64})
      for (const std::int64_t more : {0, 10}) {
        Given x;
        const Graph g = x.with(nystrom_attention(x.q, x.k, x.v, {.landmarks = landmarks, .scale = 2.0}));
        const Lengths dims{{"n", length}, {"m", length + more}};
        const Cubes c(g, dims);
        BOOST_TEST_CONTEXT(length << " queries, " << more << " keys more, " << landmarks << " landmarks") {
          check_plain(g, dims, plain_nystrom(c.q, c.k, c.v, landmarks, 6, 2.0), 2e-4);
        }
      }
}

BOOST_AUTO_TEST_CASE(a_pseudo_inverse_inverts_and_knows_nothing_of_its_neighbours) {
  Builder b;
  const Node x = b.input("x", f32, {n, 1, 5, 5});
  // Far from singular: the diagonal leads.
  const Node eye = constant(b, {5, 5}, {1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1});
  const Node a = softmax(scale(x, 0.5) + scale(eye, 3));
  b.output("a", a);
  const Node z = stochastic_pseudo_inverse(a);
  b.output("z", z);
  b.output("product", matmul(a, z));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  const Results three = run(g, {}, {{"n", 3}}, {.backend = "simd"}, 4);
  for (std::size_t i = 0; i < three.at("product").size(); ++i)
    BOOST_TEST(std::abs(three.at("product")[i] - (i % 25 % 6 == 0 ? 1 : 0)) < 1e-4);
  // The first matrix alone, and in front of others: the same bits.
  const Results one = run(g, {}, {{"n", 1}}, {.backend = "simd"}, 4);
  for (std::size_t i = 0; i < 25; ++i) BOOST_TEST(one.at("z")[i] == three.at("z")[i]);
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto mistake = [](auto f, std::int64_t kv_heads = 2) {
    Given x(kv_heads);
    return mistake_of(x.with(f(x)));
  };
  BOOST_TEST(mistake([](Given& x) { return pooled_attention(x.q, x.k, x.v, {.ratio = 0}); }) ==
             "ratio 0; a ratio of at least 1");
  BOOST_TEST(mistake([](Given& x) { return pooled_attention(x.q, x.k, x.v, {.pool = reduction::sum}); }) ==
             "sum; mean, max or first");
  BOOST_TEST(mistake([](Given& x) { return pooled_attention(x.q, x.k, x.v, {.pool = reduction::first}); }) ==
             "the first of each run; the mean or largest of each run, without lengths");
  BOOST_TEST(mistake([](Given& x) { return pooled_attention(x.q, x.k, x.v, {.causal = true}); }) ==
             "m keys; as many as queries: n");
  BOOST_TEST(mistake([](Given& x) { return linformer_attention("l", x.q, x.k, x.v, {.length = 0}); }) ==
             "a projection of 512 keys to 0; at least 1 of each");
  BOOST_TEST(mistake([](Given& x) {
               return linformer_attention("l", x.q, x.k, x.v, {.key_projection = x.g.input("e", f32, {7})});
             }) == "[7]; [length, max_length]");
  BOOST_TEST(mistake([](Given& x) { return nystrom_attention(x.q, x.k, x.v, {.landmarks = 0}); }) ==
             "0 landmarks; at least 1 landmark");
  BOOST_TEST(mistake([](Given& x) { return nystrom_attention(x.q, x.k, x.v, {.iterations = -1}); }) ==
             "-1 iterations; 0 or more iterations");
  BOOST_TEST(mistake([](Given& x) { return nystrom_attention(x.q, x.k, x.v); }, 1) ==
             "1 key heads for 2; a key head for each query head");
  BOOST_TEST(mistake([](Given& x) { return nystrom_attention(x.q, x.v, x.v); }) == "key 5; query 9");

  // More keys than the projection has columns.
  Given x;
  const Graph g = x.with(linformer_attention("low", x.q, x.k, x.v, {.length = 3, .max_length = 8}));
  const std::string message = error_of([&] {
    BoundModel model(g, Parameters::random(g, 1), {.backend = "simd"});
    model.bind_dims({{"n", 4}, {"m", 9}});
  });
  BOOST_TEST(message.find("the slice [0, 9) leaves axis 1, which has 8") != std::string::npos, message);
}

BOOST_AUTO_TEST_SUITE_END()

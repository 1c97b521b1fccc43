// Attention within clusters, over their means, and tables that are computed in the run.

#include "plain_variants.hpp"

#include <treadle/ops/routing_attention.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t heads = 2, clusters = 4, head_dim = 8, value_dim = 5;
const double usual = 1 / std::sqrt(static_cast<double>(head_dim));
const DimSpec m = dim("m");

struct Given {
  Builder g;
  Node q, k, v, centroids;
  explicit Given(const DimSpec& keys = n)
      : q(g.input("q", f32, {2, heads, n, head_dim})),
        k(g.input("k", f32, {2, heads, keys, head_dim})),
        v(g.input("v", f32, {2, heads, keys, value_dim})),
        centroids(g.input("centroids", f32, {1, heads, clusters, head_dim})) {
    centroids = reshape(centroids, {heads, clusters, head_dim});
  }
  Graph with(Node y) {
    g.output("y", y);
    return g.finish();
  }
};

struct Cubes {
  Cube q, k, v, centroids;
  Cubes(const Graph& g, const Lengths& dims) {
    const Tensors in = inputs_of(g, dims, 21);
    q = cube_of(in, "q");
    k = cube_of(in, "k");
    v = cube_of(in, "v");
    centroids = cube_of(in, "centroids");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(routing)

BOOST_AUTO_TEST_CASE(within_clusters, *boost::unit_test::label("long")) {
  for (const std::int64_t length : {0, 1, 7, 16, 33, 90})
    for (const bool is_causal : {false, true})
      for (const std::int64_t more : {0, 5}) {
        Given x(m);
        const Graph g = x.with(routing_attention(x.q, x.k, x.v, x.centroids, {.causal = is_causal}));
        const Lengths dims{{"n", length}, {"m", length + more}};
        const Cubes c(g, dims);
        const Ids of_q = nearest(c.q, c.centroids), of_k = nearest(c.k, c.centroids);
        BOOST_TEST_CONTEXT(length << " queries, " << more << " keys more" << (is_causal ? ", causal" : ""))
        check_plain(g, dims, plain_routing(c.q, c.k, c.v, of_q, of_k, is_causal, usual));
      }
}

BOOST_AUTO_TEST_CASE(centroids_that_move) {
  for (const std::int64_t length : {3, 40})
    for (const int iterations : {1, 2}) {
      Given x;
      const Graph g = x.with(routing_attention(x.q, x.k, x.v, x.centroids, {.iterations = iterations}));
      const Lengths dims{{"n", length}};
      Cubes c(g, dims);
      for (int i = 0; i < iterations; ++i) c.centroids = moved_centroids(c.q, c.k, c.centroids);
      const Ids of_q = nearest(c.q, c.centroids), of_k = nearest(c.k, c.centroids);
      BOOST_TEST_CONTEXT(length << " tokens, " << iterations << " rounds")
      check_plain(g, dims, plain_routing(c.q, c.k, c.v, of_q, of_k, false, usual));
    }
}

BOOST_AUTO_TEST_CASE(own_cluster_and_means_of_the_others) {
  for (const std::int64_t length : {1, 7, 33}) {
    Given x(m);
    const Graph g = x.with(clustered_attention(x.q, x.k, x.v, x.centroids, {.scale = 0.8}));
    const Lengths dims{{"n", length}, {"m", length + 3}};
    const Cubes c(g, dims);
    const Ids of_q = nearest(c.q, c.centroids), of_k = nearest(c.k, c.centroids);
    BOOST_TEST_CONTEXT(length << " tokens")
    check_plain(g, dims, plain_clustered(c.q, c.k, c.v, clusters, of_q, of_k, 0.8));
  }
}

BOOST_AUTO_TEST_CASE(one_cluster_is_attention) {
  Builder b;
  const Node q = b.input("q", f32, {1, 1, n, 4}), c = full(b, {1, 1, 4}, 1);
  b.output("y", routing_attention(q, q, q, c, {.causal = true}));
  b.output("attention", attention(q, q, q, {.mask = causal}));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  const Results r = run(g, {}, {{"n", 50}}, {.backend = "simd"}, 3);
  BOOST_TEST(r.at("y") == r.at("attention"), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto mistake = [](RoutingOptions o, bool levels, const std::vector<std::int64_t>& shape) {
    Given x;
    std::vector<Dim> dims;
    for (const std::int64_t d : shape) dims.push_back(x.g.dim_number(d));
    const Node c = x.g.parameter("c", dims);
    return mistake_of(
        x.with(levels ? clustered_attention(x.q, x.k, x.v, c, o) : routing_attention(x.q, x.k, x.v, c, o)));
  };
  BOOST_TEST(mistake({}, false, {2, 4, 7}) ==
             "centroids [2, 4, 7]; [heads, clusters, head_dim] with [heads, head_dim] = [2, 8]");
  BOOST_TEST(mistake({}, false, {2, 0, 8}) ==
             "centroids [2, 0, 8]; [heads, clusters, head_dim] with [heads, head_dim] = [2, 8]");
  BOOST_TEST(mistake({.iterations = -2}, false, {2, 4, 8}) == "-2 iterations; 0 or more iterations");
  BOOST_TEST(mistake({.causal = true}, true, {2, 4, 8}) == "causal; no order: means hold keys of the future");
}

BOOST_AUTO_TEST_SUITE_END()

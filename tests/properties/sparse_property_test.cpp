// Attention that chooses its keys (routing, clusters, the largest scores) and Longformer's layer as kernels compute
// them against their definitions, over random sizes, options and numbers. A round whose choice hangs by a rounding is
// left out. TREADLE_RANDOM_ROUNDS sets how many rounds there are.

#include "property.hpp"

#include <treadle/ops/longformer.hpp>
#include <treadle/ops/routing_attention.hpp>
#include <treadle/ops/top_k_attention.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr double close_call = 1e-5;

/// Heads, centroids for all batch elements or for each, and rounds of k-means.
struct Routed {
  Heads x;
  std::int64_t clusters, iterations;
  bool each;
  Node centroids;
  std::optional<double> scale;

  Routed(Round& r, bool equal)
      : x(r, {.groups = false, .equal = equal}),
        clusters(r.note("clusters", r.pick(1, 6))),
        iterations(r.note("iterations", std::max<std::int64_t>(0, r.pick(-2, 2)))),
        each(r.note("centroids of each element", r.maybe())),
        centroids(x.g.input("centroids", f32, {each ? x.batch : 1, x.heads, clusters, x.head_dim})),
        scale(x.scale(r)) {
    if (!each) centroids = reshape(centroids, {x.heads, clusters, x.head_dim});
  }

  struct Choice {
    Cube q, k, v;
    Ids of_q, of_k;
  };
  /// Skips the round if it is a close call.
  Choice choose(Round& r, const Tensors& in) const {
    Choice c{cube_of(in, "q"), cube_of(in, "k"), cube_of(in, "v"), {}, {}};
    Cube centres = cube_of(in, "centroids");
    double margin = INFINITY;
    for (std::int64_t i = 0; i < iterations; ++i) centres = moved_centroids(c.q, c.k, centres, &margin);
    c.of_q = nearest(c.q, centres, &margin);
    c.of_k = nearest(c.k, centres, &margin);
    if (margin < close_call) r.skip();
    return c;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sparse_properties)

BOOST_AUTO_TEST_CASE(routing) {
  property([](Round& r) {
    const bool is_causal = r.note("causal", r.maybe());
    Routed x(r, is_causal && r.maybe());
    x.x.g.output("y", routing_attention(x.x.q, x.x.k, x.x.v, x.centroids,
                                        {.causal = is_causal, .iterations = x.iterations, .scale = x.scale}));
    const Graph g = x.x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    const auto [q, k, v, of_q, of_k] = x.choose(r, in);
    if (r.skipped()) return;
    const Results want{{"y", plain_routing(q, k, v, of_q, of_k, is_causal, x.scale.value_or(x.x.usual_scale())).data}};
    expect(r, g, {}, in, want);
    if (is_causal && x.iterations == 0 && q.rows == k.rows) expect_causal(r, g, {}, in, want);
  });
}

BOOST_AUTO_TEST_CASE(clusters_and_means_of_the_others) {
  property([](Round& r) {
    Routed x(r, false);
    x.x.g.output("y",
                 clustered_attention(x.x.q, x.x.k, x.x.v, x.centroids, {.iterations = x.iterations, .scale = x.scale}));
    const Graph g = x.x.finish(r);
    const Tensors in = inputs_of(g, {}, r.seed());
    const auto [q, k, v, of_q, of_k] = x.choose(r, in);
    if (r.skipped()) return;
    expect(r, g, {}, in,
           {{"y", plain_clustered(q, k, v, x.clusters, of_q, of_k, x.scale.value_or(x.x.usual_scale())).data}});
  });
}

BOOST_AUTO_TEST_CASE(the_largest_scores) {
  property([](Round& r) {
    const bool is_causal = r.note("causal", r.maybe()), padded = r.note("padded", r.maybe());
    Heads x(r, {.groups = false});
    const std::int64_t kept = r.note("kept", r.maybe() ? r.pick(1, 5) : r.pick(1, 45));
    auto scale = x.scale(r);
    if (scale && r.maybe()) scale = r.note("and of the other sign", -*scale);
    TopKAttentionOptions o{.k = kept, .scale = scale};
    if (padded) x.g.input("lengths", i32, {x.batch});
    if (is_causal) o.mask = causal;
    if (padded) o.mask = o.mask ? *o.mask & key_lengths("lengths") : key_lengths("lengths");
    x.g.output("y", top_k_attention(x.q, x.k, x.v, o));
    const Graph g = x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    std::vector<std::int64_t> keys(static_cast<std::size_t>(x.batch), x.k_len);
    if (padded) keys = draw_lengths(r, in, "lengths", x.k_len, {"k", "v"});
    double margin = INFINITY;
    const Results want{
        {"y", plain_top_k(
                  cube_of(in, "q"), cube_of(in, "k"), cube_of(in, "v"), kept, scale.value_or(x.usual_scale()),
                  [&](auto b, auto, auto i, auto j) {
                    return j < keys[static_cast<std::size_t>(b)] && (!is_causal || j <= i + x.k_len - x.q_len);
                  },
                  &margin)
                  .data}};
    if (margin < close_call) return r.skip();
    expect(r, g, {}, in, want);
    if (is_causal && x.q_len == x.k_len) expect_causal(r, g, {}, in, want);
  });
}

BOOST_AUTO_TEST_CASE(longformer_layer) {
  property([](Round& r) {
    const std::int64_t batch = r.note("batch", r.pick(1, 2)), heads = r.note("heads", r.pick(1, 3)),
                       width = heads * r.note("head_dim", r.pick(1, 6)),
                       length = r.note("length", std::max<std::int64_t>(1, r.length())),
                       window = r.note("window", 2 * r.pick(0, 6));
    std::vector<std::int64_t> globals;
    for (std::int64_t i = r.pick(0, 4); i > 0; --i) globals.push_back(r.note("global", r.pick(0, length - 1)));
    const bool padded = r.note("padded", r.maybe()), bias = r.note("bias", r.maybe());
    Builder b;
    const Node x = b.input("x", f32, {batch, length, width});
    LongformerOptions o{.heads = heads, .window = window, .globals = globals, .bias = bias};
    if (padded) {
      b.input("lengths", i32, {batch});
      o.mask = key_lengths("lengths");
    }
    b.output("y", longformer_attention("attn", x, o));
    const Graph g = b.finish();
    BOOST_REQUIRE_MESSAGE(!g.error, r.notes() << ": " << mistake_of(g));
    const Parameters parameters = Parameters::random(g, r.seed());
    Tensors in = inputs_of(g, {}, r.seed());
    Cube rows(batch, 1, length, width);
    rows.data = values(in.at("x"));
    std::vector<std::int64_t> keys(static_cast<std::size_t>(batch), length);
    if (padded) keys = draw_lengths(r, in, "lengths", length, {"x"});
    const Results want{{"y", plain_longformer(rows, parameters, "attn", heads, window, globals, [&](auto e, auto j) {
                               return j < keys[static_cast<std::size_t>(e)];
                             }).data}};
    expect(r, g, parameters, in, want, [&](std::size_t i) {  // a padded token's own row is NaN
      const auto row = static_cast<std::int64_t>(i) / width;
      return row % length < keys[static_cast<std::size_t>(row / length)];
    });
  });
}

BOOST_AUTO_TEST_SUITE_END()

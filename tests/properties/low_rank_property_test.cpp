// Attention through fewer keys (pooled, Linformer, Nyström, two levels) as kernels compute it against its definition,
// over random sizes, options and numbers. TREADLE_RANDOM_ROUNDS sets how many rounds there are.

#include "property.hpp"

#include <treadle/ops/hierarchical.hpp>
#include <treadle/ops/linformer.hpp>
#include <treadle/ops/nystrom.hpp>
#include <treadle/ops/pooled_attention.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(low_rank_properties)

BOOST_AUTO_TEST_CASE(pooled) {
  property([](Round& r) {
    const bool is_causal = r.note("causal", r.maybe()), largest = r.note("max", r.maybe());
    const std::int64_t ratio = r.note("ratio", r.pick(1, 9));
    Heads x(r, {.equal = is_causal});
    const auto scale = x.scale(r);
    x.g.output(
        "y",
        pooled_attention(
            x.q, x.k, x.v,
            {.ratio = ratio, .pool = largest ? reduction::max : reduction::mean, .causal = is_causal, .scale = scale}));
    const Graph g = x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    const Cube k = plain_runs(cube_of(in, "k"), ratio, largest), v = plain_runs(cube_of(in, "v"), ratio, largest);
    const Results want{
        {"y", plain_attention(cube_of(in, "q"), k, v, scale.value_or(x.usual_scale()), [&](auto, auto, auto i, auto j) {
                return !is_causal || j * ratio + ratio - 1 <= i;
              }).data}};
    expect(r, g, {}, in, want);
    if (is_causal) expect_causal(r, g, {}, in, want);
  });
}

BOOST_AUTO_TEST_CASE(linformer) {
  property([](Round& r) {
    Heads x(r, {});
    const bool shared = r.note("shared", r.maybe());
    const std::int64_t least = r.note("length", r.pick(1, 20)), most = r.note("max_length", x.k_len + r.pick(1, 9));
    const auto scale = x.scale(r);
    x.g.output("y", linformer_attention("low", x.q, x.k, x.v,
                                        {.length = least, .max_length = most, .shared = shared, .scale = scale}));
    const Graph g = x.finish(r);
    const Parameters parameters = Parameters::random(g, r.seed());
    const Tensors in = inputs_of(g, {}, r.seed());
    const Cube k = plain_length_projection(parameters, "low.key_projection", cube_of(in, "k")),
               v = plain_length_projection(parameters, shared ? "low.key_projection" : "low.value_projection",
                                           cube_of(in, "v"));
    expect(r, g, parameters, in,
           {{"y", plain_attention(cube_of(in, "q"), k, v, scale.value_or(x.usual_scale()), sees_everything).data}});
  });
}

/// Six iterations from the transpose invert what is far from singular and smooth the rest; either way the matrix
/// polynomial is as well conditioned as the weights between landmarks let it be. Its own sensitivity is measured:
/// float64 with inputs that are off by one unit in the last place of a float.
BOOST_AUTO_TEST_CASE(nystrom) {
  property([](Round& r) {
    Heads x(r, {.groups = false, .least = 1});
    const std::int64_t landmarks = r.note("landmarks", r.pick(1, 12)), iterations = r.note("iterations", r.pick(0, 6));
    const auto scale = x.scale(r);
    x.g.output("y",
               nystrom_attention(x.q, x.k, x.v, {.landmarks = landmarks, .iterations = iterations, .scale = scale}));
    const Graph g = x.finish(r);
    const Tensors given = inputs_of(g, {}, r.seed());
    const auto formula = [&](const Tensors& in) {
      return plain_nystrom(cube_of(in, "q"), cube_of(in, "k"), cube_of(in, "v"), landmarks, iterations,
                           scale.value_or(x.usual_scale()));
    };
    const Cube want = formula(given);
    const Results got = compute(g, {}, given, r.how());
    const double error = difference(got, {{"y", want.data}});
    if (error > 1e-4) {
      double moved = 0;
      for (int draw = 0; draw < 4; ++draw) {
        Tensors in = inputs_of(g, {}, r.seed());
        for (const char* name : {"q", "k"})
          change(in, name, [&](double v) { return v * (1 + static_cast<double>(r.pick(-1, 1)) * 0x1p-23); });
        moved = std::max(moved, difference({{"y", formula(in).data}}, {{"y", want.data}}));
      }
      BOOST_TEST_REQUIRE(error < 1e-4 + 10 * moved, r.notes() << ": off by " << error << ", sensitivity " << moved);
    }
  });
}

BOOST_AUTO_TEST_CASE(hierarchical) {
  property([](Round& r) {
    Heads x(r, {.equal = true});
    const bool is_causal = r.note("causal", r.maybe()), weighted = r.note("weighted", r.maybe());
    const std::int64_t block = r.note("block", r.pick(1, 12)), nearby = r.note("near", r.pick(0, 3));
    const auto scale = x.scale(r);
    x.g.output("y", hierarchical_attention(
                        x.q, x.k, x.v,
                        {.block = block, .near = nearby, .causal = is_causal, .weighted = weighted, .scale = scale}));
    const Graph g = x.finish(r);
    Tensors in = inputs_of(g, {}, r.seed());
    const Results want{{"y", plain_hierarchical(cube_of(in, "q"), cube_of(in, "k"), cube_of(in, "v"),
                                                {block, nearby, is_causal, weighted, scale.value_or(x.usual_scale())})
                                 .data}};
    expect(r, g, {}, in, want);
    if (is_causal) expect_causal(r, g, {}, in, want);
  });
}

BOOST_AUTO_TEST_SUITE_END()

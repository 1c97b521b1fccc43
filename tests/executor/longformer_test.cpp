// Longformer's layer, and attention over the keys with the largest scores.

#include "plain_variants.hpp"

#include <treadle/ops/longformer.hpp>
#include <treadle/ops/top_k_attention.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t width = 12, heads = 3;

}  // namespace

BOOST_AUTO_TEST_SUITE(longformer)

BOOST_AUTO_TEST_CASE(windows_and_global_projections) {
  const std::vector<std::int64_t> patterns[] = {{}, {0}, {6, 0, 1, 6}, {3, 4, 5}};
  for (const auto& globals : patterns)
    for (const std::int64_t window : {0, 4})
      for (const std::int64_t length : {7, 16, 33}) {
        Builder b;
        const Node x = b.input("x", f32, {2, n, width}), lengths = b.input("lengths", i32, {2});
        BOOST_REQUIRE(lengths.valid());
        b.output("y", longformer_attention(
                          "attn", x,
                          {.heads = heads, .window = window, .globals = globals, .mask = ~key_lengths("lengths")}));
        const Graph g = b.finish();
        BOOST_REQUIRE_MESSAGE(!g.error, mistake_of(g));
        const Lengths dims{{"n", length}};
        const Parameters p = Parameters::random(g, 5, values_of(dims));
        const Tensors in = inputs_of(g, dims, 21);
        const std::vector<double> hidden =
            values(in.at("lengths"));  // here: how many keys at the start count for nobody
        Cube rows(2, 1, length, width);
        rows.data = values(in.at("x"));
        const Cube want = plain_longformer(rows, p, "attn", heads, window, globals, [&](auto e, auto j) {
          return static_cast<double>(j) >= hidden[static_cast<std::size_t>(e)];
        });
        BOOST_TEST_CONTEXT(length << " tokens, window " << window << ", " << globals.size() << " globals")
        check_plain(g, dims, want, 1e-5, &p);
      }
}

BOOST_AUTO_TEST_CASE(longformer_refusals) {
  const auto mistake = [](const LongformerOptions& o) {
    Builder b;
    b.output("y", longformer_attention("attn", b.input("x", f32, {2, n, width}), o));
    return mistake_of(b.finish());
  };
  BOOST_TEST(mistake({.heads = 5}) == "5 heads; a divisor of width 12");
  BOOST_TEST(mistake({.heads = 3, .window = 5}) == "a window of 5; an even number of keys, half to each side");
  BOOST_TEST(mistake({.heads = 3, .globals = {2, -1}}) == "global token -1; a position of 0 or more");
  Builder b;
  b.output("y", longformer_attention("attn", b.input("x", f32, {n, width}), {}));
  BOOST_TEST(mistake_of(b.finish()) == "[n, 12]; x [batch, length, width], the width a number");
  // A global token behind the end.
  Builder late;
  late.output("y", longformer_attention("attn", late.input("x", f32, {1, n, width}), {.heads = 3, .globals = {9}}));
  const Graph g = late.finish();
  const std::string message = error_of([&] {
    BoundModel model(g, Parameters::random(g, 1), {.backend = "simd"});
    model.bind_dims({{"n", 9}});
  });
  BOOST_TEST(message.find("leaves axis 1, which has 9") != std::string::npos, message);
}

BOOST_AUTO_TEST_CASE(the_largest_scores) {
  for (const std::int64_t length : {0, 1, 16, 33})
    for (const std::int64_t kept : {1, 5, 40})
      for (const bool is_causal : {false, true}) {
        Builder b;
        const Node q = b.input("q", f32, {2, 2, n, 8}), k = b.input("k", f32, {2, 2, n, 8}),
                   v = b.input("v", f32, {2, 2, n, 3});
        TopKAttentionOptions o{.k = kept};
        if (is_causal) o.mask = causal;
        b.output("y", top_k_attention(q, k, v, o));
        const Graph g = b.finish();
        const Lengths dims{{"n", length}};
        const Tensors in = inputs_of(g, dims, 21);
        const Cube cq = cube_of(in, "q"), ck = cube_of(in, "k"), cv = cube_of(in, "v");
        BOOST_TEST_CONTEXT(length << " tokens, " << kept << " kept")
        check_plain(g, dims, plain_top_k(cq, ck, cv, kept, 1 / std::sqrt(8.0), [&](auto, auto, auto i, auto j) {
                      return !is_causal || j <= i;
                    }));
      }
}

BOOST_AUTO_TEST_CASE(top_k_refusals) {
  const auto mistake = [](std::int64_t kept, std::int64_t kv_heads) {
    Builder b;
    const Node q = b.input("q", f32, {2, 2, n, 8}), k = b.input("k", f32, {2, kv_heads, n, 8});
    b.output("y", top_k_attention(q, k, k, {.k = kept}));
    return mistake_of(b.finish());
  };
  BOOST_TEST(mistake(0, 2) == "k 0; at least 1 element");
  BOOST_TEST(mistake(3, 1) == "1 key heads for 2; a key head for each query head");
}

BOOST_AUTO_TEST_SUITE_END()

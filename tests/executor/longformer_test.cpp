// Longformer's layer, and attention over the keys with the largest scores.

#include "plain.hpp"

#include <treadle/ops/longformer.hpp>
#include <treadle/ops/top_k_attention.hpp>

#include <algorithm>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t width = 12, heads = 3;

/// x Wᵀ + b, split into heads.
Cube project(const Cube& x, const Parameters& p, const std::string& name) {
  const auto* w = p.find(name + ".weight").as<const float>();
  const auto* bias = p.find(name + ".bias").as<const float>();
  Cube out(x.batch, heads, x.rows, width / heads);
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t o = 0; o < width; ++o) {
        double sum = static_cast<double>(bias[o]);
        for (std::int64_t c = 0; c < width; ++c) sum += x(b, 0, i, c) * static_cast<double>(w[o * width + c]);
        out(b, o / (width / heads), i, o % (width / heads)) = sum;
      }
  return out;
}

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
        const auto is_global = [&](std::int64_t i) {
          return std::find(globals.begin(), globals.end(), i) != globals.end();
        };
        const auto shown = [&](std::int64_t e, std::int64_t j) {
          return static_cast<double>(j) >= hidden[static_cast<std::size_t>(e)];
        };
        const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
        Cube y = plain_attention(project(rows, p, "attn.q"), project(rows, p, "attn.k"), project(rows, p, "attn.v"),
                                 scale, [&](auto e, auto, auto i, auto j) {
                                   return (std::abs(i - j) <= window / 2 || is_global(j)) && shown(e, j);
                                 });
        if (!globals.empty()) {
          const Cube other = plain_attention(project(rows, p, "attn.q_global"), project(rows, p, "attn.k_global"),
                                             project(rows, p, "attn.v_global"), scale,
                                             [&](auto e, auto, auto, auto j) { return shown(e, j); });
          for (std::int64_t e = 0; e < 2; ++e)
            for (std::int64_t h = 0; h < heads; ++h)
              for (const std::int64_t i : globals)
                for (std::int64_t c = 0; c < y.columns; ++c) y(e, h, i, c) = other(e, h, i, c);
        }
        Cube merged(2, 1, length, width);
        for (std::int64_t e = 0; e < 2; ++e)
          for (std::int64_t i = 0; i < length; ++i)
            for (std::int64_t c = 0; c < width; ++c)
              merged(e, 0, i, c) = y(e, c / (width / heads), i, c % (width / heads));
        Cube want(2, 1, length, width);
        const Cube out = project(merged, p, "attn.out");
        for (std::int64_t e = 0; e < 2; ++e)
          for (std::int64_t i = 0; i < length; ++i)
            for (std::int64_t c = 0; c < width; ++c)
              want(e, 0, i, c) = out(e, c / (width / heads), i, c % (width / heads));
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
        const auto seen = [&](std::int64_t e, std::int64_t h, std::int64_t i) {
          std::vector<std::pair<double, std::int64_t>> order;
          for (std::int64_t j = 0; j < length; ++j) {
            double dot = 0;
            for (std::int64_t c = 0; c < 8; ++c) dot += cq(e, h, i, c) * ck(e, h, j, c);
            if (!is_causal || j <= i) order.emplace_back(-dot, j);
          }
          std::sort(order.begin(), order.end());
          order.resize(std::min(order.size(), static_cast<std::size_t>(kept)));
          std::vector<Seen> s;
          for (const auto& at : order) s.push_back({&ck, &cv, at.second, 0});
          return s;
        };
        BOOST_TEST_CONTEXT(length << " tokens, " << kept << " kept")
        check_plain(g, dims, plain_attention(cq, 3, 1 / std::sqrt(8.0), seen));
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

// Two-level attention: fine nearby, means further away; parts merged by their log-sum-exps.

#include "plain_variants.hpp"

#include <treadle/ops/hierarchical.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

constexpr std::int64_t head_dim = 8, value_dim = 6;

struct Given {
  Builder g;
  Node q, k, v;
  explicit Given(const DimSpec& keys = n)
      : q(g.input("q", f32, {2, 4, n, head_dim})),
        k(g.input("k", f32, {2, 2, keys, head_dim})),
        v(g.input("v", f32, {2, 2, keys, value_dim})) {}
  Graph with(Node y) {
    g.output("y", y);
    return g.finish();
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(hierarchical)

BOOST_AUTO_TEST_CASE(parts_of_the_keys_make_the_whole) {
  Given x;
  const Mask lower = mask_mod([](auto, auto, auto, auto j) { return j % 3 == 0; });
  const auto third = [&](const Mask& m) {
    AttentionOptions o;
    o.mask = m & causal;
    return part_of(attention(x.q, x.k, x.v, o));
  };
  const Graph g = x.with(merge_attention({third(lower), third(~lower & prefix(9)), third(~lower & ~prefix(9))}));
  for (const std::int64_t length : {0, 1, 2, 15, 33}) {
    const Lengths dims{{"n", length}};
    const Tensors in = inputs_of(g, dims, 21);
    const Cube q = cube_of(in, "q"), k = cube_of(in, "k"), v = cube_of(in, "v");
    check_plain(g, dims,
                plain_attention(q, k, v, 1 / std::sqrt(8.0), [](auto, auto, auto i, auto j) { return j <= i; }));
  }
}

BOOST_AUTO_TEST_CASE(rows_without_keys_in_any_part_are_zero) {
  Given x;
  const Mask odd = mask_mod([](auto, auto, auto i, auto) { return i % 2 == 1; });
  const auto half = [&](const Mask& m) {
    AttentionOptions o;
    o.mask = m & odd;
    return part_of(attention(x.q, x.k, x.v, o));
  };
  const Graph g = x.with(merge_attention({half(prefix(4)), half(~prefix(4))}));
  const Results r = run(g, {}, {{"n", 10}}, {.backend = "simd"}, 3);
  for (std::size_t i = 0; i < r.at("y").size(); ++i) BOOST_TEST((r.at("y")[i] == 0) == (i / value_dim % 2 == 0));
}

BOOST_AUTO_TEST_CASE(by_its_formula) {
  for (const std::int64_t length : {0, 1, 7, 16, 33, 70})
    for (const std::int64_t block : {1, 5, 16})
      for (const std::int64_t near : {0, 1})
        for (const bool is_causal : {false, true})
          for (const bool weighted : {false, true}) {
            if (block == 16 && (near == 1 || length < 33)) continue;
            Given x;
            const Graph g = x.with(hierarchical_attention(
                x.q, x.k, x.v,
                {.block = block, .near = near, .causal = is_causal, .weighted = weighted, .scale = 0.9}));
            const Lengths dims{{"n", length}};
            const Tensors in = inputs_of(g, dims, 21);
            BOOST_TEST_CONTEXT(length << " tokens, block " << block << ", near " << near
                                      << (is_causal ? ", causal" : ""))
            check_plain(g, dims,
                        plain_hierarchical(cube_of(in, "q"), cube_of(in, "k"), cube_of(in, "v"),
                                           {block, near, is_causal, weighted, 0.9}));
          }
}

BOOST_AUTO_TEST_CASE(equal_keys_in_a_block_give_attention_itself) {
  constexpr std::int64_t block = 4, blocks = 9;
  Builder b;
  const Node q = b.input("q", f32, {1, 1, 36, head_dim}), few_k = b.input("few_k", f32, {1, 1, blocks, 1, head_dim}),
             few_v = b.input("few_v", f32, {1, 1, blocks, 1, value_dim});
  const auto spread = [&](Node x, std::int64_t width) {
    return reshape(x + full(b, {1, 1, blocks, block, width}, 0), {1, 1, 36, width});
  };
  const Node k = spread(few_k, head_dim), v = spread(few_v, value_dim);
  b.output("dense", attention(q, k, v));
  b.output("y", hierarchical_attention(q, k, v, {.block = block, .near = 0}));
  const Graph g = b.finish();
  BOOST_REQUIRE(!g.error);
  const Results r = run(g, {}, {}, {.backend = "simd"}, 3);
  BOOST_TEST(difference({{"y", r.at("y")}}, {{"y", r.at("dense")}}) < 1e-6);
}

BOOST_AUTO_TEST_CASE(refusals) {
  Given x(dim("m"));
  BOOST_TEST(mistake_of(x.with(hierarchical_attention(x.q, x.k, x.v))) == "m keys; as many as queries: n");
  Given y;
  BOOST_TEST(mistake_of(y.with(hierarchical_attention(y.q, y.k, y.v, {.block = 0}))) ==
             "blocks of 0, 1 near; blocks of at least 1, 0 or more near");
}

BOOST_AUTO_TEST_SUITE_END()

// Every op alone on every ISA against float64, at sizes around the vector widths.

#include "support.hpp"

#include <treadle/ops/rules.hpp>

#include <functional>

using namespace treadle;
using namespace treadle::test;

namespace {

/// Widths and lengths around 1, 4, 8 and 16 lanes.
constexpr std::int64_t lengths[] = {0, 1, 3, 8, 15, 16, 17, 33};

void check(const Graph& g, const Lengths& dims, double tolerance = 1e-5) {
  BOOST_REQUIRE_MESSAGE(!g.error, "the graph has a mistake");
  const Parameters parameters = Parameters::random(g, 5, values_of(dims));
  const Results want = oracle(g, parameters, dims, 21);
  for (const std::string& isa : isas()) {
    BOOST_TEST_CONTEXT(isa) {
      const Results dense = run(g, parameters, dims, {.backend = "simd", .isa = isa}, 21);
      BOOST_TEST(difference(dense, want) < tolerance);
      BOOST_TEST(difference(run(g, parameters, dims, {.backend = "simd", .isa = isa}, 21, true, true), dense) == 0.0);
      BOOST_TEST(difference(run(g, parameters, dims, {.backend = "tbb", .isa = isa, .threads = 2}, 21), dense) == 0.0);
    }
  }
}

/// One f32 input "x" of the given shape, one output.
void check_unary(std::initializer_list<DimSpec> shape, const std::function<Node(Node)>& f, double tolerance = 1e-5) {
  for (const std::int64_t n : lengths) {
    Builder b;
    b.output("y", f(b.input("x", f32, shape)));
    BOOST_TEST_CONTEXT("n = " << n) check(b.finish(), {{"n", n}}, tolerance);
  }
}

const DimSpec n = dim("n");

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_on_every_isa)

BOOST_AUTO_TEST_CASE(activations) {
  for (const activation a :
       {activation::relu, activation::gelu, activation::gelu_tanh, activation::silu, activation::sigmoid,
        activation::tanh, activation::exp, activation::erf, activation::elu_plus_one})
    BOOST_TEST_CONTEXT(name(a)) check_unary({2, n, 5}, [&](Node x) { return activate(x, a); });
  check_unary({3, n}, [](Node x) { return scale(x, -2.5); });
}

BOOST_AUTO_TEST_CASE(softmax_over_any_width) {
  check_unary({2, 3, n}, [](Node x) { return softmax(scale(x, 4)); });
}

BOOST_AUTO_TEST_CASE(norms) {
  for (const std::int64_t width : {1, 7, 16, 33}) {
    check_unary({2, n, width}, [](Node x) { return layer_norm("ln", x); }, 1e-4);
    check_unary({2, n, width}, [](Node x) { return rms_norm("ln", x); }, 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(projections) {
  for (const std::int64_t width : {1, 5, 48, 65}) {
    check_unary({2, n, 19}, [&](Node x) { return linear("p", x, {.width = width}); });
    check_unary({n, 19}, [&](Node x) { return linear("p", x, {.width = width, .bias = false}); });
  }
  // A view that the kernel cannot read as it is.
  check_unary({19, n}, [](Node x) { return linear("p", transpose(x), {.width = 9}); });
}

BOOST_AUTO_TEST_CASE(projections_with_a_computed_weight) {
  Builder b;
  const Node x = b.input("x", f32, {n, 6}), w = b.input("w", f32, {7, 6}), bias = b.input("b", f32, {7}),
             r = b.input("r", f32, {n, 7});
  NodeSpec s = rule::spec(op::linear, "", b, Where::current());
  s.attributes = {integer(key::has_bias, 1), integer(key::has_residual, 1),
                  integer(key::function, static_cast<std::int64_t>(activation::relu))};
  b.output("y", b.add(s, {x, w, bias, r}, infer_linear));
  check(b.finish(), {{"n", 5}});
}

BOOST_AUTO_TEST_CASE(products) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, 3, n, 5}), y = b.input("y", f32, {3, 5, 9}),
               z = b.input("z", f32, {2, 1, 7, 5});
    b.output("xy", matmul(x, y));
    b.output("xz", matmul(x, transpose(z)));
    b.output("xx", matmul(transpose(x), x));
    BOOST_TEST_CONTEXT(m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(sums_and_products_broadcast) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, 3, n}), row = b.input("row", f32, {n}),
               column = b.input("column", f32, {3, 1});
    const Node wide = b.input("wide", f32, {2, 1, 2, 1, n}), other = b.input("other", f32, {3, 1, 4, 1});
    b.output("a", x + row);
    b.output("b", column * x);
    b.output("c", x + x * x);
    b.output("d", wide * other);
    BOOST_TEST_CONTEXT(m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(layouts) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 12}), y = b.input("y", f32, {2, 4, 12});
    b.output("split", split_heads(x, 3));
    b.output("round", merge_heads(split_heads(x, 3)));
    b.output("merged", merge_heads(split_heads(x, 2) + split_heads(x, 2)));
    b.output("joined", concatenate({y, x, y}, 1));
    b.output("part", slice(concatenate({x, x}, 2), 2, 5, 13));
    b.output("turned", transpose(transpose(x, {2, 0, 1}) * transpose(x, {2, 0, 1})));
    b.output("same", x);
    BOOST_TEST_CONTEXT(m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(tables) {
  for (const std::int64_t m : {0, 1, 9}) {
    Builder b;
    const Node ids = b.input("ids", i32, {2, n}), long_ids = b.input("long_ids", i64, {n});
    b.output("a",
             embedding("e", ids, {.vocabulary = 7, .width = 17}) + learned_positions("p", {.length = 12, .offset = 2}));
    b.output("b", embedding("f", long_ids, {.vocabulary = 5, .width = 16}) + sinusoidal_positions({.offset = 3}));
    check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(attention_shapes) {
  for (const std::int64_t m : lengths) {
    for (const std::int64_t width : {5, 32}) {
      Builder b;
      const DimSpec keys = dim("keys");
      const Node q = b.input("q", f32, {2, 4, n, width}), k = b.input("k", f32, {2, 2, keys, width}),
                 v = b.input("v", f32, {2, 2, keys, 7});
      b.output("plain", attention(q, k, v));
      b.output("causal", attention(q, k, v, {.mask = causal}));
      b.output("window", attention(q, k, v, {.mask = window(3, 2), .scale = 0.3}));
      b.output("tensor",
               attention(q, k, v, {.mask = causal, .mask_tensor = b.input("keep", boolean, {2, 1, n, keys})}));
      b.output("bias", attention(q, k, v, {.bias = b.input("bias", f32, {4, n, keys})}));
      b.output("linear", linear_attention(q, k, v));
      b.output("linear_causal", linear_attention(q, k, v, {.causal = true, .feature = relu, .eps = 0.5}));
      const Graph g = b.finish();
      for (const std::int64_t keys_length : {m, m + 13}) BOOST_TEST_CONTEXT(m << " queries, " << keys_length << " keys")
      check(g, {{"n", m}, {"keys", keys_length}}, 2e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(masks_written_out) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, 3, n, n}), keep = b.input("keep", boolean, {2, 1, n, n});
    b.output("bias", softmax(x + mask_to_bias(mask_node(b, causal & window(2, 0), n, n))));
    b.output("select", softmax(select(mask_node(keep, n, n), x, -1e30)));
    const Mask both = causal;
    b.output("zero", select(mask_node(keep, n, n, &both), x, 0));
    BOOST_TEST_CONTEXT(m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_SUITE_END()

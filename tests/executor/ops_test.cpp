// Every op alone on every ISA against float64, at sizes around the vector widths.

#include "op_check.hpp"

#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(ops_on_every_isa)

BOOST_AUTO_TEST_CASE(activations) {
  for (const activation a :
       {activation::relu, activation::gelu, activation::gelu_tanh, activation::silu, activation::sigmoid,
        activation::tanh, activation::exp, activation::erf, activation::elu_plus_one, activation::softplus,
        activation::elu, activation::squared_relu, activation::quick_gelu})
    BOOST_TEST_CONTEXT(name(a)) check_unary({2, n, 5}, [&](Node x) { return activate(x, a); });
  check_unary({3, n}, [](Node x) { return scale(x, -2.5); });
  check_unary({3, n}, [](Node x) { return softcap(scale(x, 5), 2); });
  check_unary({3, n}, [](Node x) { return elu(scale(x, 3), 0.25); });
  check_unary({3, n}, [](Node x) { return log(exp(x) * exp(x)) + tanh(sigmoid(erf(x))); });
  check_unary({3, n}, [](Node x) { return relu(x) + silu(x) + softplus(gelu(x)) + quick_gelu(gelu_tanh(x)); });
}

BOOST_AUTO_TEST_CASE(activations_at_the_end_of_a_projection) {
  for (const activation a : {activation::softplus, activation::elu, activation::squared_relu, activation::quick_gelu,
                             activation::sigmoid, activation::erf})
    BOOST_TEST_CONTEXT(name(a)) {
      Builder b;
      b.output("y", activate(linear("p", b.input("x", f32, {n, 7}), {.width = 19}), a));
      const Graph g = optimise(b.finish());
      BOOST_TEST(g.count(op::activation) == 0);
      check(g, {{"n", 5}});
    }
  Builder b;  // α belongs to the activation alone
  b.output("y", elu(linear("p", b.input("x", f32, {n, 7}), {.width = 19}), 3));
  const Graph g = optimise(b.finish());
  BOOST_TEST(g.count(op::activation) == 1);
  check(g, {{"n", 5}});
}

BOOST_AUTO_TEST_CASE(softmax_over_any_width) {
  check_unary({2, 3, n}, [](Node x) { return softmax(scale(x, 4)); });
}

BOOST_AUTO_TEST_CASE(rows_to_numbers) {
  check_unary({2, 3, n}, [](Node x) { return log_softmax(scale(x, 4)); });
  check_unary({2, 3, n}, [](Node x) { return logsumexp(scale(x, 4)); });
  check_unary({n, 5}, [](Node x) { return logsumexp(x); });
  check_unary({n}, [](Node x) { return logsumexp(x); });  // one number
  check_unary({2, n, 3}, [](Node x) { return logsumexp(transpose(x, {2, 0, 1})); });
  check_unary({2, n, 5}, [](Node x) { return transpose(logsumexp(x)); });  // written where the transpose wants it
  for (const std::int64_t m : {1, 2, 9, 33}) {
    Builder b;
    const Node x = b.input("x", f32, {n, 3, m});
    b.output("first", argmax(x));
    b.output("turned", transpose(argmax(transpose(x, {0, 2, 1}))));
    check(b.finish(), {{"n", 7}});
  }
}

BOOST_AUTO_TEST_CASE(argmax_of_nothing_is_an_error) {
  Builder b;
  b.output("y", argmax(b.input("x", f32, {2, n})));
  const Graph g = b.finish();
  for (const char* backend : {"simd", "tbb", "reference"}) {
    const std::string message = error_of([&] { run(g, {}, {{"n", 0}}, {.backend = backend}, 1); });
    BOOST_TEST(message.find("argmax over an empty dim; at least 1 element is needed") != std::string::npos, message);
  }
}

BOOST_AUTO_TEST_CASE(losses) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 7}), ids = b.input("ids", i32, {2, n}), line = b.input("line", i64, {n});
    const Node y = b.input("y", f32, {n, 5});
    b.output("none", cross_entropy(x, ids, {.reduction = reduction::none}));
    b.output("sum", cross_entropy(x, ids, {.reduction = reduction::sum, .ignore_index = 2}));
    if (m > 0) b.output("mean", cross_entropy(x, ids));
    b.output("turned", cross_entropy(transpose(x, {1, 0, 2}), transpose(ids), {.reduction = reduction::none}));
    b.output("long", scale(cross_entropy(y, line, {.reduction = reduction::sum}), 0.1));
    BOOST_TEST_CONTEXT("n = " << m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(a_loss_of_an_id_that_is_no_class_is_an_error) {
  Builder b;
  b.output("y", cross_entropy(b.input("x", f32, {9, 3}), b.input("ids", i32, {9})));  // ids are 0 to 4
  const Graph g = b.finish();
  const auto message = [&](const char* backend) { return error_of([&] { run(g, {}, {}, {.backend = backend}, 1); }); };
  BOOST_TEST(message("simd") == "cross_entropy (line " + std::to_string(g.nodes[2].line) +
                                    "): an id is neither a class nor ignore_index; the results are not valid");
  BOOST_TEST(message("reference").find("is no class; ids are 0 to 2, or -100 to ignore") != std::string::npos);
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

// Reshape, gather, constants, pooling and dropout on every ISA against float64, at sizes around the vector widths.

#include "op_check.hpp"

#include <limits>

using namespace treadle;
using namespace treadle::test;

BOOST_AUTO_TEST_SUITE(layout_ops_on_every_isa)

BOOST_AUTO_TEST_CASE(reshapes) {
  check_unary({2, n, 12}, [](Node x) { return reshape(x, {2, n, 3, 4}); });
  check_unary({2, n, 12}, [](Node x) { return reshape(x, {2 * n, -1}); });
  check_unary({2, n, 12}, [](Node x) { return reshape(x, {n, 2, 1, 12, 1}); });
  check_unary({n}, [](Node x) { return reshape(x, {1, n, 1}); });
  // Not a view: the transposed dims do not lie end to end.
  check_unary({2, n, 12}, [](Node x) { return reshape(transpose(x), {2, 12 * n}); });
  check_unary({2, n, 12}, [](Node x) { return reshape(transpose(x), {2, n, 6, 2}); });
  // Written by a kernel through the reshape, into the caller's memory.
  check_unary({2, n, 12}, [](Node x) { return reshape(tanh(x), {2, 4 * n, 3}); });
  check_unary({2, n, 12}, [](Node x) { return reshape(softmax(reshape(x, {2, 3 * n, 4})), {2, n, 12}); });
  // Into and out of heads.
  check_unary({2, n, 12}, [](Node x) { return transpose(reshape(x, {2, n, 3, 4}), {0, 2, 1, 3}); });
  check_unary({2, n, 12}, [](Node x) { return reshape(slice(x, 2, 4, 8), {2, 8 * n}); });
}

BOOST_AUTO_TEST_CASE(one_number_has_many_shapes) {
  Builder b;
  const Node x = b.input("x", f32, {1, 1});
  b.output("number", reshape(x, {}));
  b.output("back", reshape(tanh(reshape(x, {})), {1, 1, 1}));
  check(b.finish(), {});
}

BOOST_AUTO_TEST_CASE(nothing_is_nothing_in_any_shape) {
  Builder b;
  const Node x = b.input("x", f32, {2, 3, 0, n});
  b.output("flat", reshape(tanh(x), {0}));
  b.output("folded", reshape(x, {2, 0}));
  b.output("other", reshape(x, {0, 7, 2}));
  check(b.finish(), {{"n", 4}});
  BOOST_TEST(mistake([](Builder& g) { return reshape(g.input("x", f32, {2, 0}), {2}); }) ==
             "[2] | as many elements as [2, 0]");
}

BOOST_AUTO_TEST_CASE(a_reshape_of_a_kernels_result_costs_no_step) {
  Builder b;
  b.output("y", reshape(tanh(reshape(b.input("x", f32, {n, 12}), {n, 3, 4})), {3 * n, 4}));
  const Graph g = b.finish();
  BoundModel model(g, {}, {.backend = "simd"});
  model.bind_dims({{"n", 5}});
  BOOST_TEST(model.steps().size() == 1u);
}

BOOST_AUTO_TEST_CASE(gathers) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, 5, n, 3}), ids = b.input("ids", i32, {n}), table = b.input("t", i64, {6, n});
    const Node each = b.input("each", i64, {2, n}), grid = b.input("grid", i32, {2, 3});
    b.output("rows", gather(x, ids, {.axis = 1}));
    b.output("columns", gather(transpose(x, {0, 2, 3, 1}), ids, {.axis = 3}));
    b.output("grid", gather(x, grid, {.axis = 1}));
    b.output("integers", gather(table, ids));
    b.output("each", gather(x, each, {.axis = 1, .batch_dims = 1}));
    b.output("turned", transpose(gather(x, ids, {.axis = 1}), {3, 2, 1, 0}));
    b.output("summed", gather(x, each, {.axis = 1, .batch_dims = 1}) + gather(x, ids, {.axis = 1}));
    BOOST_TEST_CONTEXT("n = " << m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(an_id_outside_the_axis_is_an_error) {
  Builder b;
  b.output("y", gather(b.input("x", f32, {9, 3}), b.input("ids", i32, {2, 9}), {.axis = 1}));  // ids are 0 to 4
  const Graph g = b.finish();
  const auto message = [&](const char* backend) { return error_of([&] { run(g, {}, {}, {.backend = backend}, 1); }); };
  BOOST_TEST(message("tbb").find("an id lies outside the axis; the results are not valid") != std::string::npos);
  BOOST_TEST(message("reference").find("is outside axis 1; ids are 0 to 2") != std::string::npos);
}

/// Where rows go is data: by batch element, in any order, −1 nowhere, the last of equal ones.
BOOST_AUTO_TEST_CASE(appends_at_positions) {
  for (const DType type : {i32, i64}) {
    Builder b;
    const Node x = b.input("x", f32, {2, 3, 4, n}), where = constant(b, {2, 4}, {4, -1, 0, 2, 1, 1, -1, 3}, type);
    b.output("state", append(b.state("kept", f32, {2, 3, 5, n}), x, 2, where));
    b.output("turned", append(b.state("turned", f32, {2, 5, 3, n}), transpose(x, {0, 2, 1, 3}), 1, where));
    b.output("stacked", repeat("h", 2, x, [&](Iteration& it, Node y) {
               const Node all = append(it.state("rows", f32, {2, 3, 5, n}), y * full(b, {1, 1, 1, 1}, 2), 2, where);
               return slice(all, 2, 0, 4);
             }));
    const Graph g = b.finish();
    BOOST_REQUIRE(!g.error);
    for (const std::int64_t m : lengths) BOOST_TEST_CONTEXT("n = " << m) check(g, {{"n", m}});
  }
  const auto append_to = [](std::initializer_list<DimSpec> rows, std::initializer_list<DimSpec> positions, DType type) {
    return mistake([&](Builder& b) {
      return append(b.state("s", f32, {2, 3, 5, n}), b.input("x", f32, rows), 2, b.input("p", type, positions));
    });
  };
  BOOST_TEST(append_to({2, 3, 4, n}, {2, 4}, i32).empty());
  BOOST_TEST(append_to({2, 3, 4, n}, {4, 2}, i32) == "positions [4, 2] | [2, 4]");
  BOOST_TEST(append_to({2, 3, 4, n}, {2, 4}, f32) == "f32 | i32 or i64 positions");
  BOOST_TEST(append_to({2, 2, 4, n}, {2, 4}, i32) == "[2, 2, 4, n] | [2, 3, 5, n]");
}

BOOST_AUTO_TEST_CASE(a_position_outside_the_state_is_an_error) {
  for (const std::int64_t at : {5, -2}) {
    Builder b;
    const Node positions = constant(b, {1, 1}, {static_cast<double>(at)}, i32);
    b.output("y", append(b.state("s", f32, {1, 5, 2}), b.input("x", f32, {1, 1, 2}), 1, positions));
    const Graph g = b.finish();
    const auto message = [&](const char* backend) {
      return error_of([&] { run(g, {}, {}, {.backend = backend}, 1); });
    };
    BOOST_TEST(message("tbb").find("a position lies outside the state; the results are not valid") !=
               std::string::npos);
    BOOST_TEST(
        message("reference").find("position " + std::to_string(at) + " lies outside the state; it has room for 5") !=
        std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(constants) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 4});
    b.output("sum", x + constant(b, {4}, {0.5, -1, 2, 100}));
    b.output("alone", constant(b, {2, 3}, {1, 2, 3, 4, 5, 6}));
    b.output("filled", full(b, {n, 3}, 0.25));
    b.output("negative", x * full(b, {2, 1, 1}, -1));
    b.output("rows", softmax(full(b, {n, 5}, 3)));
    b.output("weight", linear_with(x, constant(b, {2, 4}, {1, 0, 0, 0, 0, 0, -1, 0.5})));
    b.output("filled_weight", linear_with(x, full(b, {3, 4}, 0.5)));
    b.output("ids", gather(x, constant(b, {5}, {3, 0, 0, 2, 1}, i32), {.axis = 2}));
    b.output("turned", gather(x, transpose(constant(b, {2, 3}, {3, 0, 0, 2, 1, 1}, i64)), {.axis = 2}));
    b.output("whole", reshape(transpose(constant(b, {2, 3}, {1, 2, 3, 4, 5, 6})), {6}));
    b.output("number", full(b, {}, 7));
    BOOST_TEST_CONTEXT("n = " << m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_CASE(constants_in_a_body_are_the_same_in_every_iteration) {
  Builder b;
  const Node x = b.input("x", f32, {n, 4});
  b.output("y", repeat("h", 3, x, [&](Node y) { return tanh(y + constant(b, {4}, {1, -1, 0.5, 0})); }));
  check(b.finish(), {{"n", 5}});
}

BOOST_AUTO_TEST_CASE(pools) {
  for (const std::int64_t width : {1, 7, 16, 67, 130}) {
    Builder b;
    const Node x = b.input("x", f32, {3, n, width}), counts = b.input("counts", i32, {3}),
               y = b.input("y", f32, {3, 2, n, width}), five = b.input("five", f32, {3, 2, 2, n, width});
    b.output("mean", mean_pooling(x));
    b.output("max", max_pooling(x));
    b.output("mean_of_some", mean_pooling(x, counts));
    b.output("max_of_some", max_pooling(x, counts));
    b.output("heads", mean_pooling(y, counts));
    b.output("five", max_pooling(five, counts));
    b.output("turned", transpose(mean_pooling(transpose(y, {1, 0, 2, 3})), {2, 0, 1}));
    b.output("matrix", mean_pooling(reshape(x, {3 * n, width})));
    const Graph g = b.finish();
    for (const std::int64_t m : {0, 1, 2, 9, 40}) BOOST_TEST_CONTEXT("n = " << m << ", width " << width)
    check(g, {{"n", m}});
  }
  check_unary({4, 3, n}, [](Node x) { return first_token(x); });
  check_unary({4, 3, n}, [](Node x) { return first_token(tanh(x)) + first_token(x); });
}

BOOST_AUTO_TEST_CASE(what_is_padded_never_reaches_a_pool) {
  Builder b;
  const Node x = b.input("x", f32, {3, 4, 5}), counts = b.input("counts", i32, {3});
  b.output("mean", mean_pooling(x, counts));
  b.output("max", max_pooling(x, counts));
  const Graph g = b.finish();
  for (const char* backend : {"reference", "simd", "tbb"}) {
    BoundModel model(g, {}, {.backend = backend});
    Tensor in(f32, {3, 4, 5}), some(i32, {3}), mean(f32, {3, 5}), max(f32, {3, 5});
    for (int i = 0; i < 60; ++i)  // two positions of the first element, none of the second, all of the third
      in.view.as<float>()[i] = i < 10 ? static_cast<float>(i) : std::numeric_limits<float>::quiet_NaN();
    for (int i = 40; i < 60; ++i) in.view.as<float>()[i] = 1;
    for (int i = 0; i < 3; ++i) some.view.as<std::int32_t>()[i] = i == 0 ? 2 : i == 1 ? 0 : 4;
    model.run({{"x", in.view}, {"counts", some.view}}, {{"mean", mean.view}, {"max", max.view}});
    BOOST_TEST((values(mean) == std::vector<double>{2.5, 3.5, 4.5, 5.5, 6.5, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}), backend);
    BOOST_TEST((values(max) == std::vector<double>{5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}), backend);
  }
}

BOOST_AUTO_TEST_CASE(the_first_of_no_tokens_is_an_error) {
  Builder b;
  b.output("y", first_token(b.input("x", f32, {2, n, 3})));
  const Graph g = b.finish();
  for (const char* backend : {"reference", "simd"}) {
    const std::string message = error_of([&] { run(g, {}, {{"n", 0}}, {.backend = backend}, 1); });
    BOOST_TEST(message.find("the first of 0 tokens; at least 1 is needed") != std::string::npos, message);
  }
}

BOOST_AUTO_TEST_CASE(dropouts) {
  for (const std::int64_t m : lengths) {
    Builder b;
    const Node x = b.input("x", f32, {2, n, 5}), keep = b.input("keep", boolean, {2, n, 5}),
               row = b.input("row", boolean, {n, 1}), five = b.input("five", f32, {2, 3, 2, n, 5});
    b.output("quarter", dropout(x, keep, 0.25));
    b.output("rows", dropout(x, row, 0.5));
    b.output("all", dropout(x, keep, 1));
    b.output("none", dropout(x, keep, 0));
    b.output("evaluation", dropout(x, 0.25));
    b.output("five", dropout(five, row, 0.1));
    b.output("turned", transpose(dropout(transpose(x, {2, 0, 1}), transpose(keep, {2, 0, 1}), 0.25)));
    BOOST_TEST_CONTEXT("n = " << m) check(b.finish(), {{"n", m}});
  }
}

BOOST_AUTO_TEST_SUITE_END()

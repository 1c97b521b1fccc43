// The builder: shapes, names, repeats with captures, states and side outputs, and the mistakes it records.

#include <treadle/graph/freeze.hpp>
#include <treadle/models/examples.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using namespace treadle;

namespace {

template <auto Build>
constexpr auto frozen = [] {
  const Graph g = Build();
  return freeze<capacity_for(512)>(g, g.error);
}();

static_assert(!frozen<models::tiny_gpt>.error && frozen<models::tiny_gpt>.count(op::attention) == 1);
static_assert(!frozen<models::encoder_decoder>.error && frozen<models::encoder_decoder>.count(op::repeat) == 2);
static_assert(!frozen<models::vit>.error);
static_assert(!frozen<models::decoder_step>.error && frozen<models::decoder_step>.count(op::state) == 2);
static_assert(!frozen<models::nested>.error && frozen<models::nested>.count(op::repeat) == 2);

std::int32_t find(const Graph& g, op o, std::string_view leaf) {
  for (std::int32_t n = 0; n < g.view().size(); ++n)
    if (g.nodes[n].op == o && g.strings[g.nodes[n].leaf] == leaf) return n;
  return -1;
}
std::string shape_of(const Graph& g, Value v) {
  std::vector<Dim> s;
  for (Dim d : g.view().shape(v)) s.push_back(d);
  return std::string(shape_text(g, s).view());
}
template <class Body>
ModelError mistake(Body body) {
  Builder g;
  body(g);
  return g.finish().error;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(builder)

BOOST_AUTO_TEST_CASE(every_example_is_right) {
  for (const models::Entry& e : models::all) {
    const Graph g = e.build();
    BOOST_TEST(!g.error, e.name);
    BOOST_TEST(g.count(op::output) >= 1, e.name);
  }
}

BOOST_AUTO_TEST_CASE(rows_lose_their_last_dim) {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 8});
  BOOST_TEST((b.shape(logsumexp(x)) == std::vector<Dim>{b.intern(batch), b.intern(seq)}));
  BOOST_TEST((b.dtype(argmax(x)) == i64));
  BOOST_TEST((b.shape(cross_entropy(x, argmax(x)))).empty());
  BOOST_TEST((b.shape(cross_entropy(x, argmax(x), {.reduction = reduction::none})) == b.shape(logsumexp(x))));
}

BOOST_AUTO_TEST_CASE(a_cap_is_positive_and_a_loss_has_an_id_for_each_row) {
  const ModelError cap = mistake([](Builder& g) { g.output("y", softcap(g.input("x", f32, {4}), -1)); });
  BOOST_TEST((cap.kind == error_kind::bad_attribute));
  const ModelError ids = mistake(
      [](Builder& g) { g.output("y", cross_entropy(g.input("x", f32, {seq, 4}), g.input("ids", i32, {batch}))); });
  BOOST_TEST((ids.kind == error_kind::shape_mismatch));
  const ModelError how = mistake([](Builder& g) {
    g.output("y",
             cross_entropy(g.input("x", f32, {seq, 4}), g.input("ids", i32, {seq}), {.reduction = reduction::max}));
  });
  BOOST_TEST((how.kind == error_kind::bad_attribute));
  const ModelError nothing = mistake([](Builder& g) { g.output("y", argmax(g.input("x", f32, {seq, 0}))); });
  BOOST_TEST((nothing.kind == error_kind::wrong_rank));
}

BOOST_AUTO_TEST_CASE(a_reshape_proves_its_size) {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 12});
  BOOST_TEST(shape_of(b.graph(), reshape(x, {batch, seq, 3, 4}).value) == "[batch, seq, 3, 4]");
  BOOST_TEST(shape_of(b.graph(), reshape(x, {batch * seq, -1}).value) == "[batch*seq, 12]");
  BOOST_TEST(shape_of(b.graph(), reshape(x, {batch, -1, 4}).value) == "[batch, 3*seq, 4]");
  BOOST_TEST(shape_of(b.graph(), reshape(x, {3, seq, 4 * batch}).value) == "[3, seq, 4*batch]");
  const Node y = b.input("y", f32, {dim("a"), dim("b"), dim("c"), dim("d") * dim("e"), dim("f"), 2});
  BOOST_TEST(shape_of(b.graph(), reshape(y, {dim("a"), 2 * dim("b"), dim("c"), dim("e") * dim("d"), dim("f")}).value) ==
             "[a, 2*b, c, d*e, f]");  // more names than one product may have: equal dims are cancelled first
  BOOST_TEST(!b.graph().error);
  const auto refused = [](std::initializer_list<DimSpec> shape) {
    const ModelError e =
        mistake([&](Builder& g) { g.output("y", reshape(g.input("x", f32, {batch, seq, 12}), shape)); });
    return e.kind == error_kind::shape_mismatch;
  };
  BOOST_TEST(refused({batch, seq, 13}));
  BOOST_TEST(refused({batch, seq}));
  BOOST_TEST(refused({seq, seq, 12}));
  BOOST_TEST(refused({batch, seq, 5, -1}));  // 12 is no multiple of 5
  BOOST_TEST(refused({batch, 7, -1}));       // nor is seq known to be one of 7
  BOOST_TEST(refused({batch, -1, -1, 12}));
}

BOOST_AUTO_TEST_CASE(gathers_pools_and_constants_have_their_shapes) {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 8}), ids = b.input("ids", i32, {batch, 3});
  BOOST_TEST(shape_of(b.graph(), gather(x, ids, {.axis = 1}).value) == "[batch, batch, 3, 8]");
  BOOST_TEST(shape_of(b.graph(), gather(x, ids, {.axis = 1, .batch_dims = 1}).value) == "[batch, 3, 8]");
  BOOST_TEST(shape_of(b.graph(), mean_pooling(x, b.input("n", i32, {batch})).value) == "[batch, 8]");
  BOOST_TEST(shape_of(b.graph(), first_token(x).value) == "[batch, 8]");
  BOOST_TEST(shape_of(b.graph(), full(b, {batch, 2}, 1).value) == "[batch, 2]");
  BOOST_TEST((dropout(x, 0.1).value == x.value));
  const Node c = constant(b, {2, 2}, {1, 2, 3, 4.5});
  BOOST_TEST(b.graph().view().constant_element(c.value.node, 3) == 4.5);
  BOOST_TEST(!b.graph().error);
}

BOOST_AUTO_TEST_CASE(mistakes_of_gathers_pools_constants_and_dropouts) {
  const auto kind = [](auto body) {
    return mistake([&](Builder& g) { g.output("y", body(g, g.input("x", f32, {batch, seq, 8}))); }).kind;
  };
  using enum error_kind;
  BOOST_TEST((kind([](Builder& g, Node x) { return gather(x, g.input("i", f32, {2})); }) == wrong_dtype));
  BOOST_TEST(
      (kind([](Builder& g, Node x) { return gather(x, g.input("i", i32, {2}), {.axis = 3}); }) == bad_attribute));
  BOOST_TEST(
      (kind([](Builder& g, Node x) { return gather(x, g.input("i", i32, {2}), {.batch_dims = 1}); }) == bad_attribute));
  BOOST_TEST((kind([](Builder& g, Node x) {
                return gather(x, g.input("i", i32, {2}), {.axis = 1, .batch_dims = 1});
              }) == shape_mismatch));
  BOOST_TEST((kind([](Builder& g, Node x) { return gather(x, g.input("i", i32, {1, 2, 3, 4, 5})); }) == wrong_rank));
  BOOST_TEST((kind([](Builder& g, Node x) { return mean_pooling(x, g.input("n", i64, {batch})); }) == wrong_dtype));
  BOOST_TEST((kind([](Builder& g, Node x) { return mean_pooling(x, g.input("n", i32, {seq})); }) == shape_mismatch));
  BOOST_TEST((kind([](Builder&, Node x) { return first_token(slice(x, 1, 0, 0)); }) == bad_attribute));
  BOOST_TEST((kind([](Builder& g, Node x) { return x + constant(g, {8}, {1, 2}); }) == shape_mismatch));
  BOOST_TEST((kind([](Builder&, Node x) { return dropout(x, 1.5); }) == bad_attribute));
  BOOST_TEST((kind([](Builder& g, Node x) { return dropout(x, g.input("k", f32, {8}), 0.5); }) == wrong_dtype));
  BOOST_TEST((kind([](Builder& g, Node x) { return dropout(x, g.input("k", boolean, {2, 1, 1, 1}), 0.5); }) ==
              shape_mismatch));
}

BOOST_AUTO_TEST_CASE(patches_plus_one_positions) {
  const Graph g = models::vit();
  const std::int32_t n = find(g, op::positions, "positions");
  BOOST_REQUIRE(n >= 0);
  BOOST_TEST(shape_of(g, {n, 0}) == "[patches + 1, 36]");
}

BOOST_AUTO_TEST_CASE(a_decoder_captures_the_encoder_once) {
  const Graph g = models::encoder_decoder();
  const std::int32_t n = find(g, op::repeat, "decoder");
  BOOST_REQUIRE(n >= 0);
  BOOST_TEST(g.view().get_integer(n, key::carried) == 1);
  BOOST_TEST(g.view().get_integer(n, key::captured) == 1);
  BOOST_TEST(g.view().inputs(n).size() == 2u);
}

BOOST_AUTO_TEST_CASE(states_are_stacked_and_named_without_iterations) {
  const Graph g = models::decoder_step();
  const std::int32_t n = find(g, op::state, "k_cache");
  BOOST_REQUIRE(n >= 0);
  BOOST_TEST(g.view().scope(n) == "h");
  BOOST_TEST(shape_of(g, {n, 0}) == "[2, 1, 2, 64, 8]");
  const std::int32_t r = find(g, op::repeat, "h");
  BOOST_TEST(g.view().get_integer(r, key::states) == 2);
  const std::int32_t a = g.view().results(static_cast<std::int32_t>(g.view().get_integer(r, key::region)))[1].node;
  BOOST_TEST((g.nodes[a].op == op::region_input));
  BOOST_TEST(g.view().get_integer(a, key::index) ==
             g.view().get_integer(r, key::carried) + g.view().get_integer(r, key::captured));
}

BOOST_AUTO_TEST_CASE(side_outputs_are_stacked) {
  const Graph g = models::nested();
  const std::int32_t n = find(g, op::output, "hidden");
  BOOST_TEST(shape_of(g, {n, 0}) == "[2, batch, seq, 24]");
}

BOOST_AUTO_TEST_CASE(parameters_are_named_by_scope_and_iteration) {
  const Graph g = models::tiny_gpt();
  const std::int32_t n = find(g, op::parameter, "q.weight");
  BOOST_REQUIRE(n >= 0);
  BOOST_TEST(g.view().scope(n) == "h.#.attn");
}

BOOST_AUTO_TEST_CASE(a_mask_is_one_expression_for_every_layer_that_writes_it) {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 16});
  const Node y = self_attention("one", x, {.heads = 2, .mask = causal & window(4, 0)});
  b.output("y", self_attention("two", y, {.heads = 2, .mask = causal & window(4, 0)}));
  const Graph g = b.finish();
  std::vector<std::int64_t> roots;
  for (std::int32_t n = 0; n < g.view().size(); ++n)
    if (g.nodes[n].op == op::mask) roots.push_back(g.view().get_integer(n, key::expression));
  BOOST_REQUIRE(roots.size() == 2u);
  BOOST_TEST(roots[0] == roots[1]);
}

BOOST_AUTO_TEST_CASE(masks_have_the_shape_of_their_tables) {
  Builder b;
  b.input("lengths", i32, {batch});
  b.input("reach", i32, {4});
  const Mask by_length = key_lengths("lengths"),
             by_head = mask_mod([](auto, auto h, auto q, auto k) { return q - k <= lookup<i32>("reach", h); });
  const auto shape = [&](const Mask& m) {
    return std::string(shape_text(b.graph(), b.shape(mask_node(b, m, seq, seq))).view());
  };
  BOOST_TEST(shape(causal) == "[1, 1, seq, seq]");
  BOOST_TEST(shape_text(b.graph(), b.shape(mask_node(b, causal, 33, 65))).view() == "[1, 1, 33, 65]");
  BOOST_TEST(shape(causal & by_length) == "[batch, 1, seq, seq]");
  BOOST_TEST(shape(by_head) == "[1, 4, seq, seq]");
  BOOST_TEST(shape(by_head | by_length) == "[batch, 4, seq, seq]");
}

BOOST_AUTO_TEST_CASE(the_first_mistake_is_recorded_with_both_facts) {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 64});
  b.output("y", x + linear("up", x, {.width = 96}));
  const Graph g = b.finish();
  BOOST_TEST((g.error.kind == error_kind::shape_mismatch));
  BOOST_TEST(g.strings[g.error.got] == "[batch, seq, 96]");
  BOOST_TEST(g.strings[g.error.expected] == "[batch, seq, 64]");
}

BOOST_AUTO_TEST_CASE(mistakes_of_every_kind) {
  BOOST_TEST((mistake([](Builder& g) { g.input("x", f32, {seq}); }).kind == error_kind::output_never_set));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, 8});
                g.input("x", f32, {seq});
                g.output("y", x);
              }).kind == error_kind::duplicate_name));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, 9});
                g.output("y", split_heads(x, 2));
              }).kind == error_kind::heads_do_not_divide_width));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, 8});
                g.output("y", slice(x, 1, 0, dim("sqe")));
              }).kind == error_kind::unknown_dim));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, 8});
                g.output("y", transpose(x, {0, 0, 1}));
              }).kind == error_kind::bad_attribute));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, 8});
                const Mask m = mask_mod([](auto, auto, auto q, auto k) { return q < k || q == k; });
                g.output("y", self_attention("a", x, {.heads = 2, .mask = m}));
              }).kind == error_kind::untraceable));
  BOOST_TEST((mistake([](Builder& g) {
                g.input("x", f32, {batch, seq, 8});
                const Mask m = mask_mod([](auto, auto h, auto q, auto k) { return q - k < h; });
                g.output("y", mask_to_bias(mask_node(g, m, seq, seq)));
              }).kind == error_kind::bad_attribute));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, seq});
                g.output("y", linear("q", x, {.width = 8}));
              }).kind == error_kind::wrong_width));
  BOOST_TEST((mistake([](Builder& g) {
                const Node x = g.input("x", f32, {batch, seq, 8});
                Node kept = x;
                repeat("h", 2, x, [&](Node y) { return kept = y + y; });
                g.output("y", kept);  // a value of the body, after the repeat
              }).kind == error_kind::bad_attribute));
}

BOOST_AUTO_TEST_SUITE_END()

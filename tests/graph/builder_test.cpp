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

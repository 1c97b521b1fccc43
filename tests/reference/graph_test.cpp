// Whole graphs in the reference: repeats, captures, side outputs, states, masks with tables, and what it refuses.

#include "arrays.hpp"

#include <treadle/models/examples.hpp>

#include <algorithm>
#include <limits>

using namespace treadle;
using namespace treadle::test;
namespace ref = treadle::reference;

namespace {

ref::Tensors<double> run(const Graph& g, const DimValues& dims, const ref::Tensors<double>& inputs,
                         const ref::Tensors<double>& parameters = {}, ref::Tensors<double>* states = nullptr) {
  return ref::evaluate<double>(g, dims, inputs, parameters, states);
}

Array<double> ids(Shape shape, std::uint64_t seed, std::int64_t vocabulary) {
  Array<double> out = ref::zeros<double>(std::move(shape));
  for (std::size_t i = 0; i < out.data.size(); ++i)
    out.data[i] = static_cast<double>(splitmix64(seed, i) % static_cast<std::uint64_t>(vocabulary));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reference_graphs)

BOOST_AUTO_TEST_CASE(nested_repeats_use_the_parameters_of_their_iteration) {
  // x → (x + w) · g with one w for each inner and one g for each outer iteration; the sides are the outer results.
  Builder g;
  const Node x = g.input("x", f32, {1});
  const Node captured = g.input("c", f32, {1});
  const RepeatResult r = repeat("outer", 2, x, [&](Iteration& it, Node y) {
    y = repeat("inner", 3, y, [&](Node z) { return z + z.builder->parameter("w", z.builder->shape(z)) + captured; });
    y = y * y.builder->parameter("g", y.builder->shape(y));
    it.side("hidden", y);
    return y;
  });
  g.output("y", r.carried[0]);
  g.output("hidden", r.sides[0]);
  const Graph graph = g.finish();
  BOOST_REQUIRE(!graph.error);
  ref::Tensors<double> parameters{{"outer.0.g", array({1}, {2})}, {"outer.1.g", array({1}, {10})}};
  for (int o = 0; o < 2; ++o)
    for (int i = 0; i < 3; ++i)
      parameters["outer." + std::to_string(o) + ".inner." + std::to_string(i) + ".w"] = array({1}, {1.0 + i + 10 * o});
  const auto out = run(graph, {}, {{"x", array({1}, {5})}, {"c", array({1}, {100})}}, parameters);
  // ((5 + 1+2+3 + 300) · 2 = 622; (622 + 11+12+13 + 300) · 10 = 9580
  check_close(out.at("y"), array({1}, {9580}));
  check_close(out.at("hidden"), array({2, 1}, {622, 9580}));
}

BOOST_AUTO_TEST_CASE(a_cache_filled_step_by_step_gives_what_one_step_gives) {
  const Graph g = models::decoder_step();
  BOOST_REQUIRE(!g.error);
  const Parameters parameters = Parameters::random(g, 1);
  const auto tokens = ids({1, 11}, 2, 53);
  const auto step = [&](std::int64_t past, std::int64_t fresh, ref::Tensors<double>& states) {
    const ref::Tensors<double> inputs{{"history", ref::zeros<double>({past})},
                                      {"tokens", ref::slice(tokens, 1, past, fresh)}};
    return ref::evaluate<double>(g, {{"past", past}, {"fresh", fresh}}, inputs, parameters, &states).at("logits");
  };
  ref::Tensors<double> once, bit_by_bit;
  const auto whole = step(0, 11, once);
  std::vector<Array<double>> parts;
  std::int64_t past = 0;
  for (const std::int64_t fresh : {4, 1, 1, 5}) {
    parts.push_back(step(past, fresh, bit_by_bit));
    past += fresh;
  }
  check_close(ref::concatenate<double>({&parts[0], &parts[1], &parts[2], &parts[3]}, 1), whole, 1e-12);
  BOOST_TEST(once.size() == 2u);
  for (const auto& [name, state] : once) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(shape_text(state.shape) == "[2, 1, 2, 64, 8]");
      BOOST_TEST(std::abs(state.data[0]) > 0);
      check_close(bit_by_bit.at(name), state, 1e-12);
    }
  }
  // The cache matters: without it the last tokens see nothing of the first.
  ref::Tensors<double> empty;
  BOOST_TEST(largest_difference(step(6, 5, empty), parts[3]) > 1e-3);
  const std::string full = error_of([&] {
    const ref::Tensors<double> inputs{{"history", ref::zeros<double>({60})}, {"tokens", ref::zeros<double>({1, 5})}};
    ref::evaluate<double>(g, {{"past", 60}, {"fresh", 5}}, inputs, parameters, &empty);
  });
  BOOST_TEST(contains(full, "positions 60 to 64 are outside the table; it holds 64"));
}

BOOST_AUTO_TEST_CASE(every_example_runs_in_both_precisions) {
  for (const models::Entry& entry : models::all) {
    BOOST_TEST_CONTEXT(std::string(entry.name)) {
      const Graph g = entry.build();
      BOOST_REQUIRE(!g.error);
      const DimValues dims{{"batch", 2},    {"seq", 13}, {"source_len", 9}, {"target_len", 6},
                           {"patches", 16}, {"past", 3}, {"fresh", 4}};
      const BoundDims bound(g, dims);
      ref::Tensors<float> single;
      ref::Tensors<double> twice;
      const GraphView view = g;
      for (std::int32_t n = 0; n < view.size(); ++n) {
        if (view.nodes[static_cast<std::size_t>(n)].op != op::input) continue;
        const std::string name(view.leaf(n));
        const auto shape = bound(view.shape({n, 0}));
        const bool integers = view.info({n, 0}).dtype != f32;
        Array<double> a = integers ? ids(shape, 3, name == "document" ? 3 : 10) : random_array(shape, seed_of(name, 4));
        if (name == "document") std::sort(a.data.begin(), a.data.end());
        single[name] = {a.shape, std::vector<float>(a.data.begin(), a.data.end())};
        twice[name] = std::move(a);
      }
      const Parameters parameters = Parameters::random(g, 5);
      const auto a = ref::evaluate<float>(g, dims, single, parameters);
      const auto b = ref::evaluate<double>(g, dims, twice, parameters);
      BOOST_TEST(!b.empty());
      BOOST_TEST(a.size() == b.size());
      for (const auto& [name, values] : b) {
        BOOST_TEST(values.size() > 0);
        check_close(to_double(a.at(name)), values, 1e-4);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(written_out_attention_is_attention) {
  const auto graph_of = [](bool fused) {
    Builder g;
    const Node q = g.input("q", f32, {2, 3, seq, 4}), k = g.input("k", f32, {2, 3, seq, 4}),
               v = g.input("v", f32, {2, 3, seq, 5});
    if (fused) {
      g.output("y", attention(q, k, v, {.mask = causal}));
    } else {
      const Node m = mask_node(g, causal, seq, seq);
      g.output(
          "y",
          matmul(softmax(select(m, scale(matmul(q, transpose(k)), 0.5), -std::numeric_limits<double>::infinity())), v));
    }
    return g.finish();
  };
  const ref::Tensors<double> inputs{
      {"q", random_array({2, 3, 6, 4}, 1)}, {"k", random_array({2, 3, 6, 4}, 2)}, {"v", random_array({2, 3, 6, 5}, 3)}};
  check_close(run(graph_of(true), {{"seq", 6}}, inputs).at("y"), run(graph_of(false), {{"seq", 6}}, inputs).at("y"));
}

BOOST_AUTO_TEST_CASE(masks_see_the_batch_element_the_head_and_their_tables) {
  // Head h sees keys at a multiple of h + 1 among the first lengths[b].
  const Mask m = mask_mod([](auto, auto h, auto, auto k) { return k % (h + 1) == 0; }) & key_lengths("lengths");
  Builder g;
  const Node q = g.input("q", f32, {2, 2, 1, 1}), k = g.input("k", f32, {2, 2, 4, 1}),
             v = g.input("v", f32, {2, 2, 4, 1});
  g.input("lengths", i32, {2});
  g.output("y", attention(q, k, v, {.mask = m}));
  const Graph graph = g.finish();
  BOOST_REQUIRE(!graph.error);
  Array<double> values = ref::zeros<double>({2, 2, 4, 1});
  for (std::size_t i = 0; i < 16; ++i) values.data[i] = std::pow(10.0, static_cast<double>(i % 4));
  const ref::Tensors<double> inputs{{"q", ref::zeros<double>({2, 2, 1, 1})},
                                    {"k", ref::zeros<double>({2, 2, 4, 1})},
                                    {"v", values},
                                    {"lengths", array({2}, {4, 2})}};
  check_close(run(graph, {}, inputs).at("y"), array({2, 2, 1, 1}, {1111.0 / 4, 101.0 / 2, 11.0 / 2, 1}), 1e-9);
}

BOOST_AUTO_TEST_CASE(a_repeats_captured_table_is_found_by_name) {
  // Two tables whose order in the graph is not their order in the expression.
  Builder g;
  const Node x = g.input("x", f32, {1, 1, 3, 1});
  g.input("second", i32, {3});
  g.input("first", i32, {3});
  const Mask m = documents("first") & global_tokens("second", mask::Rows::shared, false);
  g.output("y", repeat("r", 1, x, [&](Node y) { return attention(scale(y, 0), scale(y, 0), y, {.mask = m}); }));
  const Graph graph = g.finish();
  BOOST_REQUIRE(!graph.error);
  const ref::Tensors<double> inputs{
      {"x", array({1, 1, 3, 1}, {1, 10, 100})}, {"first", array({3}, {4, 4, 5})}, {"second", array({3}, {0, 1, 1})}};
  check_close(run(graph, {}, inputs).at("y"), array({1, 1, 3, 1}, {10, 10, 100}), 1e-9);
}

BOOST_AUTO_TEST_CASE(a_score_function_changes_scores) {
  Builder g;
  const Node q = g.input("q", f32, {1, 2, 1, 1}), k = g.input("k", f32, {1, 2, 2, 1}),
             v = g.input("v", f32, {1, 2, 2, 1});
  const Node slopes = g.input("slopes", f32, {2});
  const auto f = score_mod([](auto score, auto, auto h, auto, auto at) { return score + lookup("slopes", h) * at; });
  NodeSpec s;
  s.op = op::attention;
  s.attributes = {number(key::scale, 1), integer(key::has_mask, 0), integer(key::has_bias, 0),
                  integer(key::has_sink, 0),
                  scalar_attribute(key::expression, static_cast<std::int32_t>(f.add_to(g.graph().scalars)))};
  g.output("y", g.add(s, {q, k, v, slopes}, infer_attention));
  const Graph graph = g.finish();
  BOOST_REQUIRE(!graph.error);
  const ref::Tensors<double> inputs{{"q", ref::zeros<double>({1, 2, 1, 1})},
                                    {"k", ref::zeros<double>({1, 2, 2, 1})},
                                    {"v", array({1, 2, 2, 1}, {0, 4, 0, 4})},
                                    {"slopes", array({2}, {0, std::log(3.0)})}};
  check_close(run(graph, {}, inputs).at("y"), array({1, 2, 1, 1}, {2, 3}));
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  Builder g;
  const Node x = g.input("x", f32, {batch, 3});
  g.output("y", linear("proj", x, {.width = 2}));
  const Graph graph = g.finish();
  const ref::Tensors<double> good{{"proj.weight", ref::zeros<double>({2, 3})}, {"proj.bias", ref::zeros<double>({2})}};
  const ref::Tensors<double> x4{{"x", ref::zeros<double>({4, 3})}}, x5{{"x", ref::zeros<double>({5, 3})}};
  BOOST_TEST(error_of([&] { run(graph, {{"batch", 4}}, x4, good); }).empty());
  BOOST_TEST(contains(error_of([&] { run(graph, {{"batch", 4}}, {{"z", {}}}, good); }), "input 'x' is missing"));
  BOOST_TEST(contains(error_of([&] { run(graph, {}, x4, good); }), "dim 'batch' has no value"));
  BOOST_TEST(contains(error_of([&] { run(graph, {{"batch", 4}}, x5, good); }),
                      "input 'x' has shape [5, 3]; the graph wants [4, 3]"));
  BOOST_TEST(contains(error_of([&] { run(graph, {{"batch", 4}}, x4, {}); }), "parameter 'proj.weight' is missing"));
  BOOST_TEST(
      contains(error_of([&] { run(graph, {{"batch", 4}}, {{"x", array({4, 3}, {1})}}, good); }), "has 1 values"));
  ref::Tensors<double> wrong = good;
  wrong["proj.bias"] = ref::zeros<double>({3});
  BOOST_TEST(contains(error_of([&] { run(graph, {{"batch", 4}}, x4, wrong); }),
                      "parameter 'proj.bias' has shape [3]; the graph wants [2]"));

  Builder e;
  e.output("y", embedding("wte", e.input("tokens", i32, {seq}), {.vocabulary = 4, .width = 1}));
  const Graph lookup_graph = e.finish();
  const ref::Tensors<double> table{{"wte.weight", ref::zeros<double>({4, 1})}};
  const std::string outside =
      error_of([&] { run(lookup_graph, {{"seq", 2}}, {{"tokens", array({2}, {1, 4})}}, table); });
  BOOST_TEST(contains(outside, "embedding 'wte'"));
  BOOST_TEST(contains(outside, "id 4 is outside"));
}

BOOST_AUTO_TEST_CASE(views_of_any_dtype_and_stride_come_in_and_go_out) {
  std::vector<std::int32_t> numbers{1, 2, 3, 4, 5, 6};
  const Shape shape{2, 3};
  TensorView t = dense_view(numbers.data(), DType::i32, shape);
  std::swap(t.shape[0], t.shape[1]);
  std::swap(t.strides[0], t.strides[1]);
  check_close(ref::from_view<double>(t), array({3, 2}, {1, 4, 2, 5, 3, 6}));
  ref::to_view(array({3, 2}, {10, 40, 20, 50, 30, 60}), t);
  BOOST_TEST(numbers[3] == 40);
  BOOST_TEST(numbers[2] == 30);
  const Shape one{1};
  std::int64_t large = (std::int64_t{1} << 24) + 1;
  BOOST_TEST(ref::from_view<double>(dense_view(&large, DType::i64, one)).data[0] == 16777217.0);
  BOOST_TEST(
      contains(error_of([&] { ref::from_view<float>(dense_view(&large, DType::i64, one)); }), "16777217 is too large"));
}

BOOST_AUTO_TEST_SUITE_END()

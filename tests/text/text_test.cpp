#include <treadle/graph/random.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>

#include <boost/test/unit_test.hpp>

#include <stdexcept>

using namespace treadle;

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(a_repeat_reads_and_prints_the_same) {
  const std::string_view source = R"(%0 = input "tokens" () : i32[batch, seq]
%1 = parameter "wte.weight" () : f32[50257, 768]
%2 = embedding "wte" (%1, %0) : f32[batch, seq, 768]
%6 = repeat "h" (%2) {times=12, carried=1, captured=0, states=0, sides=0} region {
  %3 = region_input () {index=0} : f32[batch, seq, 768]
  %4 = parameter "h.#" "proj.weight" () : f32[768, 768]
  %5 = linear "h.#" "proj" (%3, %4) {has_bias=0, has_residual=0, function=gelu_tanh} : f32[batch, seq, 768]
  results (%5)
} : f32[batch, seq, 768]
%7 = output "hidden" (%6) : f32[batch, seq, 768]
)";
  const Graph g = parse_graph(source);
  BOOST_TEST(to_text(g) == source);
  BOOST_TEST(g.nodes.size() == 8u);
  BOOST_TEST(g.regions.size() == 2u);
  BOOST_TEST(g.regions[1].repeat_node == 6);
  BOOST_TEST(g.view().get_integer(5, key::function) == static_cast<int>(activation::gelu_tanh));
  BOOST_TEST(g.view().scope(4) == "h.#");
}

BOOST_AUTO_TEST_CASE(sequence_ops_read_and_print_the_same) {
  const std::string_view source = R"(%0 = input "q" () : f32[batch, 2, seq, 8]
%1 = input "p" () : i32[seq]
%2 = rope (%0, %1) {base=10000, layout=interleaved, offset=past + 1, rotary_dim=4, has_positions=1} : f32[batch, 2, seq, 8]
%3 = random_projection () {features=16, head_dim=8, seed=3} : f32[16, 8]
%4 = random_features (%2, %3) {scale=0.5} : f32[batch, 2, seq, 16]
%5 = linear_attention (%4, %4, %0) {causal=1, eps=0, function=exp, has_mask=0} : f32[batch, 2, seq, 8]
%6 = rope (%5) {base=500, layout=half, offset=0, rotary_dim=8, has_positions=0} : f32[batch, 2, seq, 8]
)";
  BOOST_TEST(to_text(parse_graph(source)) == source);
  BOOST_CHECK_THROW(
      parse_graph("%0 = input \"q\" () : f32[2, 2, 2, 8]\n%1 = rope (%0) {layout=third} : f32[2, 2, 2, 8]"),
      std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(numbers_are_canonical) {
  // Any numbers and comments go in; the order of the nodes comes out.
  const Graph g = parse_graph(R"(
    %70 = input "x" () : f32[batch, seq, 4]  // the input
    %5 = scale (%70) {factor=0.5} : f32[batch, seq, 4]
    %6 = attention (%70, %70, %70) {scale=1, has_mask=0} : f32[batch, seq, 4], f32[batch, seq]
    %1 = add (%5, %6#1) : f32[batch, seq, 4])");
  BOOST_TEST(to_text(g) == R"(%0 = input "x" () : f32[batch, seq, 4]
%1 = scale (%0) {factor=0.5} : f32[batch, seq, 4]
%2 = attention (%0, %0, %0) {scale=1, has_mask=0} : f32[batch, seq, 4], f32[batch, seq]
%3 = add (%1, %2#1) : f32[batch, seq, 4]
)");
}

BOOST_AUTO_TEST_CASE(dims_print_in_one_way_however_they_were_made) {
  const auto shape = [](std::string_view dims) {
    const Graph g = parse_graph("%0 = input \"x\" () : f32[" + std::string(dims) + "]");
    return to_text(g, Value{0, 0});
  };
  BOOST_TEST(shape("1 + patches") == "f32[patches + 1]");
  BOOST_TEST(shape("seq*2*batch") == "f32[2*batch*seq]");
  BOOST_TEST(shape("batch*seq*2") == "f32[2*batch*seq]");
  BOOST_TEST(shape("seq - 1 - past") == "f32[-past + seq - 1]");
  BOOST_TEST(shape("(a + b)*(a - b)") == "f32[a*a - b*b]");
  BOOST_TEST(shape("ceil_div(seq + 3, 4), min(seq, 7), max(b, a)") ==
             "f32[ceil_div(seq + 3, 4), min(7, seq), max(a, b)]");
  BOOST_TEST(shape("ceil_div(8, 4), a - a") == "f32[2, 0]");
  BOOST_TEST(shape("\"odd name\" + 1") == "f32[\"odd name\" + 1]");
  BOOST_TEST(shape("") == "f32[]");
}

BOOST_AUTO_TEST_CASE(attributes_of_every_kind) {
  const std::string_view source = R"(%0 = input "x" () : f32[2, past + seq, 4]
%1 = state "cache" () : f32[2, 64, 4]
%2 = append (%1, %0) {axis=1, offset=past} : f32[2, 2*past + seq, 4]
%3 = transpose (%2) {perm=[0, 2, 1]} : f32[2, 4, 2*past + seq]
%4 = mask () {has_tensor=0, expression=`k <= q`, q_len=seq, k_len=past + seq} : bool[1, 1, seq, past + seq]
%5 = select (%4, %3) {value=-inf} : f32[2, 4, 2*past + seq]
%6 = layer_norm (%5) {eps=1e-05} : f32[2, 4, 2*past + seq]
%9 = repeat "h" (%0) {times=3, carried=1} region {
  %7 = region_input () {index=0} : f32[2, past + seq, 4]
  %8 = slice (%7) {axis=[1, 2, 1]} : f32[2, past + seq, 4]
  results (%8)
} : f32[2, past + seq, 4]
)";
  const Graph g = parse_graph(source);
  BOOST_TEST(to_text(g) == source);
  BOOST_TEST(g.view().get_integer_at(8, key::axis, 1) == 2);
}

BOOST_AUTO_TEST_CASE(attributes_with_names) {
  const std::string_view source = R"(%0 = input "x" () : f32[batch, 4]
%1 = activation (%0) {function=elu, alpha=0.5} : f32[batch, 4]
%2 = softcap (%1) {factor=30} : f32[batch, 4]
%3 = argmax (%2) : i64[batch]
%4 = cross_entropy (%2, %3) {reduction=mean, ignore_index=-100} : f32[]
)";
  const Graph g = parse_graph(source);
  BOOST_TEST(to_text(g) == source);
  BOOST_TEST(g.view().get_integer(4, key::reduction) == static_cast<int>(reduction::mean));
  BOOST_TEST(g.view().get_number(1, key::alpha) == 0.5);
}

BOOST_AUTO_TEST_CASE(constants_print_their_numbers) {
  const std::string_view source = R"(%0 = constant () {data=[0.5, -inf, 3, 0.1]} : f32[2, 2]
%1 = constant () {data=[1, 0]} : i32[2]
%2 = constant () {value=-1.5} : f32[batch, 2]
%3 = gather (%0, %1) {axis=1, batch_dims=0} : f32[2, 2]
%4 = reshape (%3) : f32[4]
%5 = constant () {data=[]} : f32[0]
)";
  const Graph g = parse_graph(source);
  BOOST_TEST(to_text(g) == source);
  BOOST_TEST(g.view().constant_element(0, 3) == 0.1);
  BOOST_TEST(g.view().constant_element(2, 7) == -1.5);
  BOOST_TEST(g.tables.size() == 6u);
}

BOOST_AUTO_TEST_CASE(names_with_special_characters) {
  Graph g;
  g.regions.push_back({});
  NodeSpec s;
  s.op = op::input;
  s.leaf = g.strings.intern("a \"b\"\\\nc");
  s.outputs = {{f32, {}}};
  add_node(g, s);
  const std::string text = to_text(g);
  BOOST_TEST(text == "%0 = input \"a \\\"b\\\"\\\\\\nc\" () : f32[]\n");
  BOOST_TEST(parse_graph(text).view().leaf(0) == "a \"b\"\\\nc");
}

BOOST_AUTO_TEST_CASE(mistakes_are_named_with_their_line) {
  const auto message = [](std::string_view source) -> std::string {
    try {
      parse_graph(source);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "no error";
  };
  BOOST_TEST(message("%0 = inptu \"x\" () : f32[2]") ==
             "line 1: unknown op 'inptu'; expected one of those in graph/op.hpp");
  BOOST_TEST(message("\n%0 = scale (%1)") == "line 2: node %1 is not defined yet; expected a node that stands above");
  BOOST_TEST(message("%0 = input () : f16[2]") == "line 1: unknown type 'f16'; expected f32, f64, i32, i64 or bool");
  BOOST_TEST(message("%0 = input () : f32[2") == "line 1: the end of the text; expected ']' after a shape");
  BOOST_TEST(message("%0 = input () {colour=1}") ==
             "line 1: unknown attribute 'colour'; expected one of those in graph/op.hpp");
  BOOST_TEST(message("%0 = constant () {data=[1, x]}") ==
             "line 1: 'x'; expected a number such as 0.125, 1e-05 or -inf");
  BOOST_TEST(message("%0 = constant () {data=3}") == "line 1: '3'; expected '[' before a list of numbers");
  BOOST_TEST(message("%0 = cross_entropy () {reduction=median}") ==
             "line 1: unknown reduction 'median'; expected one of those in graph/op.hpp");
  BOOST_TEST(message("%0 = input () : f32[2]\n%0 = input () : f32[2]") ==
             "line 2: node %0 is defined twice; expected a new number");
  BOOST_TEST(message("%0 = input () : f32[2]\n%1 = scale (%0#1)") == "line 2: output 1 of %0; expected less than 1");
  BOOST_TEST(message("%0 = repeat () {times=2}") ==
             "line 1: the end of the text; expected 'region {' with the body of the repeat");
  BOOST_TEST(message("%0 = mask () {expression=`k <`}").find("line 1: an expression that cannot be read at ") == 0u);
  BOOST_TEST(message("%0 = input \"x") == "line 1: a name without an end; expected '\"' on the same line");
  BOOST_TEST(message("%0 = input () : f32[a*a*a*a*a*a]") == "line 1: a product of too many dims; expected at most 5");
}

BOOST_AUTO_TEST_CASE(text_cut_anywhere_is_an_error_and_never_worse) {
  const std::string text = to_text(models::decoder_step());
  for (std::size_t length = 0; length < text.size(); length += 7) {
    try {
      parse_graph(std::string_view(text).substr(0, length));
    } catch (const std::invalid_argument&) {
    }
  }
}

BOOST_AUTO_TEST_CASE(example_models_keep_their_text) {
  for (const models::Entry& e : models::all) {
    const std::string text = to_text(e.build());
    BOOST_TEST_CONTEXT(e.name) { BOOST_TEST(to_text(parse_graph(text)) == text); }
  }
}

BOOST_AUTO_TEST_CASE(random_graphs_keep_their_text) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = to_text(random_graph(seed));
    BOOST_TEST_CONTEXT("seed " << seed) { BOOST_REQUIRE_EQUAL(to_text(parse_graph(text)), text); }
  }
}

BOOST_AUTO_TEST_SUITE_END()

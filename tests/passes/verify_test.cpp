#include <treadle/graph/random.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>
#include <treadle/passes/verify.hpp>

#include <boost/test/unit_test.hpp>

using namespace treadle;

namespace {

std::string first_violation(std::string_view source) {
  const Violation v = verify(parse_graph(source));
  return v ? std::to_string(v.node) + ": " + std::string(v.rule) : "none";
}

// A model that fits, built and verified by the compiler.
static_assert(!verify(models::tiny_gpt()));
static_assert([] {
  Graph g = models::written_out();
  g.shapes.back() = g.dims.number(7);  // the width of the output
  return verify(g).rule == "outputs have the dtype and shape that the op's rule infers";
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(verifier)

BOOST_AUTO_TEST_CASE(example_models_are_well_formed) {
  for (const models::Entry& e : models::all)
    for (const std::string& v : violations(e.build())) BOOST_ERROR(e.name << ": " << v);
}

BOOST_AUTO_TEST_CASE(random_graphs_are_well_formed_and_hold_every_op) {
  std::vector<int> counts(op_count);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph g = random_graph(seed);
    for (const std::string& v : violations(g)) BOOST_ERROR("seed " << seed << ": " << v);
    for (const NodeData& n : g.nodes) ++counts[static_cast<std::size_t>(n.op)];
    for (const NodeData& n : optimise(g).nodes) ++counts[static_cast<std::size_t>(n.op)];  // what only passes make
  }
  for (int i = 0; i < op_count; ++i)
    BOOST_TEST(counts[static_cast<std::size_t>(i)] > 0, "no " << op_names[i] << " in 300 random graphs");
}

BOOST_AUTO_TEST_CASE(shapes_that_only_the_output_names) {
  const std::string x = "%0 = input \"x\" () : f32[batch, 4]\n";
  const char* inferred = "outputs have the dtype and shape that the op's rule infers";
  BOOST_TEST(first_violation(x + "%1 = reshape (%0) : f32[2, batch, 2]") == "none");
  BOOST_TEST(first_violation(x + "%1 = reshape (%0) : f32[2, batch, 3]") == std::string("1: ") + inferred);
  BOOST_TEST(first_violation(x + "%1 = reshape (%0) : i32[2, batch, 2]") == std::string("1: ") + inferred);
  BOOST_TEST(first_violation("%0 = constant () {data=[1, 2]} : f32[2]") == "none");
  BOOST_TEST(first_violation("%0 = constant () {data=[1, 2]} : f32[3]") == std::string("0: ") + inferred);
  BOOST_TEST(first_violation("%0 = constant () : f32[3]") == std::string("0: ") + inferred);
  Graph g = parse_graph("%0 = constant () {data=[1, 2]} : f32[2]");
  g.attributes[0].integer = 1;  // leaves the table
  BOOST_TEST(verify(g).rule == "an attribute stands once, with a value of its key's kind");
}

BOOST_AUTO_TEST_CASE(each_rule_finds_what_it_is_for) {
  const std::string x = "%0 = input \"x\" () : f32[batch, 4]\n";
  BOOST_TEST(first_violation(x + "%1 = scale (%0) {factor=2} : f32[batch, 4]") == "none");
  BOOST_TEST(first_violation(x + "%1 = scale (%0) {factor=2} : f32[batch, 5]") ==
             "1: outputs have the dtype and shape that the op's rule infers");
  BOOST_TEST(first_violation(x + "%1 = scale (%0, %0) {factor=2} : f32[batch, 4]") ==
             "1: a node has the inputs and outputs that its op and its has_… attributes announce");
  BOOST_TEST(first_violation(x + "%1 = layer_norm (%0) {has_weight=1} : f32[batch, 4]") ==
             "1: a node has the inputs and outputs that its op and its has_… attributes announce");
  BOOST_TEST(first_violation(x + x.substr(0, 1) + "1" + x.substr(2)) ==
             "1: no two inputs, parameters and states, and no two outputs, share a name");
  BOOST_TEST(first_violation("%0 = input () : f32[2]") ==
             "0: inputs, states and outputs stand in the main region and have names, as parameters do");
  BOOST_TEST(first_violation("%0 = parameter \"h.#\" \"w\" () : f32[2]") ==
             "0: a parameter's scope has one # per repeat around it");
  BOOST_TEST(first_violation(x + "%1 = scale (%0) {factor=2, factor=2} : f32[batch, 4]") ==
             "1: an attribute stands once, with a value of its key's kind");
  BOOST_TEST(first_violation("%0 = input \"x\" () : i32[2]\n%1 = scale (%0) {factor=2} : i32[2]") ==
             "1: arithmetic is on f32; what is joined has one dtype");
  BOOST_TEST(first_violation(x + "%1 = append (%0, %0) {axis=0, offset=1} : f32[batch + 1, 4]") ==
             "1: append writes to a state, and each state is appended to at most once");
  BOOST_TEST(
      first_violation("%0 = input \"n\" () : i32[batch]\n%1 = mask (%0) {has_tensor=0, expression=`k < "
                      "lookup<i32>(\"n\", b)`, q_len=4, "
                      "k_len=4} : bool[1, 1, 4, 4]\n%2 = mask_to_bias (%1) : f32[1, 1, 4, 4]") ==
      "2: mask_to_bias, select and dropout read masks with b_len or h_len if they depend on the batch element or head");
  BOOST_TEST(
      first_violation(
          "%0 = state \"s\" () : f32[8, 4]\n%1 = input \"x\" () : f32[1, 4]\n"
          "%2 = append (%0, %1) {axis=0, offset=0} : f32[1, 4]\n%3 = append (%0, %1) {axis=0, offset=1} : f32[2, 4]") ==
      "3: append writes to a state, and each state is appended to at most once");
}

BOOST_AUTO_TEST_CASE(sequence_ops_are_checked) {
  const std::string q = "%0 = input \"q\" () : f32[1, 2, seq, 6]\n%1 = input \"s\" () : f32[1, 2, 6, 7]\n";
  const std::string announced = "2: a node has the inputs and outputs that its op and its has_… attributes announce";
  const std::string inferred = "2: outputs have the dtype and shape that the op's rule infers";
  const std::string with_state = "%2 = linear_attention (%0, %0, %0, %1) {has_state=1} : f32[1, 2, seq, 6]";
  BOOST_TEST(first_violation(q + with_state + ", f32[1, 2, 6, 7]") == "none");
  BOOST_TEST(first_violation(q + with_state) == announced);
  BOOST_TEST(first_violation(q + "%2 = linear_attention (%0, %0, %0, %1) {has_state=0} : f32[1, 2, seq, 6]") ==
             announced);
  BOOST_TEST(first_violation(q + "%2 = rope (%0) {rotary_dim=4} : f32[1, 2, seq, 6]") == "none");
  BOOST_TEST(first_violation(q + "%2 = rope (%0) {rotary_dim=4, has_positions=1} : f32[1, 2, seq, 6]") == announced);
  BOOST_TEST(first_violation(q + "%2 = rope (%0) {rotary_dim=3} : f32[1, 2, seq, 6]") == inferred);
  const std::string recurrent = " : f32[1, 2, seq, 6], f32[1, 2, 6, 6]";
  BOOST_TEST(first_violation(q + "%2 = recurrent_attention (%0, %0, %0) {scale=1}" + recurrent) == "none");
  BOOST_TEST(first_violation(q + "%2 = recurrent_attention (%0, %0, %0) {scale=1} : f32[1, 2, seq, 6]") == announced);
  BOOST_TEST(first_violation(q + "%2 = recurrent_attention (%0, %0, %0) {has_gate=1}" + recurrent) == announced);
  BOOST_TEST(first_violation(q + "%2 = recurrent_attention (%0, %0, %0, %0) {has_gate=1}" + recurrent) == "none");
  BOOST_TEST(first_violation(q + "%2 = recurrent_attention (%0, %0, %0, %0) {has_beta=1}" + recurrent) == inferred);
  BOOST_TEST(first_violation(q + "%2 = recurrent_attention (%0, %0, %0, %1) {has_state=1}" + recurrent) == inferred);
  BOOST_TEST(first_violation(q + "%2 = map (%0) {expression=`x + 1`} : f32[1, 2, seq, 6]") == "none");
  BOOST_TEST(first_violation(q + "%2 = map (%0) {expression=`x + k`} : f32[1, 2, seq, 6]") ==
             "2: a map has a function of its input alone");
  BOOST_TEST(first_violation(q + "%2 = random_projection () {features=3, head_dim=6} : f32[3, 5]") == inferred);
}

BOOST_AUTO_TEST_CASE(repeats_are_checked_against_their_bodies) {
  const auto model = [](std::string_view counts, std::string_view input, std::string_view results) {
    return "%0 = input \"x\" () : f32[4]\n%3 = repeat \"h\" (%0) {" + std::string(counts) +
           "} region {\n  %1 = region_input () {index=0} : " + std::string(input) +
           "\n  %2 = scale (%1) {factor=2} : " + std::string(input) + "\n  results (" + std::string(results) +
           ")\n} : f32[4]\n";
  };
  const std::string broken =
      "3: a repeat's inputs, outputs and results match its counts and its body, in number and type";
  BOOST_TEST(first_violation(model("times=2, carried=1", "f32[4]", "%2")) == "none");
  BOOST_TEST(first_violation(model("times=0, carried=1", "f32[4]", "%2")) == broken);
  BOOST_TEST(first_violation(model("times=2, carried=1, captured=1", "f32[4]", "%2")) == broken);
  BOOST_TEST(first_violation(model("times=2, carried=1", "f32[5]", "%2")) == broken);
  BOOST_TEST(first_violation(model("times=2, carried=1", "f32[4]", "%2, %2")) == broken);
  BOOST_TEST(first_violation(model("times=2, carried=1", "f32[4]", "%0")) == broken);  // a result from outside
  // An outer value inside a body, not handed in.
  const std::string source = model("times=2, carried=1", "f32[4]", "%2");
  const auto at = source.find("scale (%1)");
  BOOST_TEST(first_violation(source.substr(0, at) + "scale (%0)" + source.substr(at + 10)) ==
             "2: inputs belong to the node's own region; a repeat hands outer values in");
}

BOOST_AUTO_TEST_CASE(violations_name_the_node) {
  const Graph g = parse_graph("%0 = input \"x\" () : f32[4]\n%1 = scale \"h\" \"s\" (%0) {factor=2} : f32[5]");
  const auto found = violations(g);
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0] ==
             "node 1 (scale \"h\" \"s\") breaks the rule: outputs have the dtype and shape that the op's rule infers");
}

BOOST_AUTO_TEST_CASE(indices_outside_their_tables_are_found_first) {
  Graph g = parse_graph("%0 = input \"x\" () : f32[4]");
  g.nodes[0].outputs.count = 7;
  BOOST_TEST(verify(g).rule == "every index of a node lies inside its table");
  BOOST_TEST(violations(g).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

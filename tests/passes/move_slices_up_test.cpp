#include <treadle/models/examples.hpp>
#include <treadle/passes/move_slices_up.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

/// A decoder's end: the logits of the last token.
constexpr Graph last_token() {
  Builder b;
  const Node x = b.input("x", f32, {batch, seq, 8});
  const Node y = x + ffn("mlp", layer_norm("ln", x), {.hidden = 16, .activation = gelu});
  const Node logits = linear("head", layer_norm("ln_f", y), {.width = 50});
  b.output("y", slice(logits, 1, seq - 1, 1));
  return b.finish();
}

// The slice ends at the model's input: everything works on one row of each sequence.
static_assert([] {
  const Graph g = move_slices_up(last_token());
  for (std::int32_t n = 0; n < g.view().size(); ++n)
    if (g.nodes[n].op == op::slice && g.nodes[g.view().inputs(n)[0].node].op != op::input) return false;
  return !verify(g) && g.count(op::slice) == 1;
}());

}  // namespace

BOOST_AUTO_TEST_SUITE(move_slices_up_pass)

BOOST_AUTO_TEST_CASE(past_a_norm_and_a_projection) {
  BOOST_TEST(test::run(move_slices_up, R"(
%0 = input "x" () : f32[batch, seq, 4]
%1 = parameter "g" () : f32[4]
%2 = rms_norm (%0, %1) {has_weight=1, eps=1e-06} : f32[batch, seq, 4]
%3 = parameter "w" () : f32[7, 4]
%4 = linear "head" (%2, %3) {has_bias=0, has_residual=0, function=none} : f32[batch, seq, 7]
%5 = slice (%4) {axis=1, begin=seq - 1, length=1} : f32[batch, 1, 7]
%6 = output "y" (%5) : f32[batch, 1, 7]
)",
                       1) == R"(%0 = input "x" () : f32[batch, seq, 4]
%1 = parameter "g" () : f32[4]
%2 = parameter "w" () : f32[7, 4]
%3 = slice (%0) {axis=1, begin=seq - 1, length=1} : f32[batch, 1, 4]
%4 = rms_norm (%3, %1) {has_weight=1, eps=1e-06} : f32[batch, 1, 4]
%5 = linear "head" (%4, %2) {has_bias=0, has_residual=0, function=none} : f32[batch, 1, 7]
%6 = output "y" (%5) : f32[batch, 1, 7]
)");
}

BOOST_AUTO_TEST_CASE(past_embeddings_positions_and_heads) {
  BOOST_TEST(test::run(move_slices_up, R"(
%0 = input "ids" () : i32[batch, seq]
%1 = parameter "table" () : f32[9, 4]
%2 = embedding (%1, %0) : f32[batch, seq, 4]
%3 = parameter "wpe" () : f32[16, 4]
%4 = positions (%3) {offset=past, length=seq} : f32[seq, 4]
%5 = add (%2, %4) : f32[batch, seq, 4]
%6 = split_heads (%5) {heads=2} : f32[batch, 2, seq, 2]
%7 = slice (%6) {axis=2, begin=3, length=2} : f32[batch, 2, 2, 2]
%8 = output "y" (%7) : f32[batch, 2, 2, 2]
)",
                       1) == R"(%0 = input "ids" () : i32[batch, seq]
%1 = parameter "table" () : f32[9, 4]
%2 = parameter "wpe" () : f32[16, 4]
%3 = slice (%0) {axis=1, begin=3, length=2} : i32[batch, 2]
%4 = embedding (%1, %3) : f32[batch, 2, 4]
%5 = positions (%2) {offset=past + 3, length=2} : f32[2, 4]
%6 = add (%4, %5) : f32[batch, 2, 4]
%7 = split_heads (%6) {heads=2} : f32[batch, 2, 2, 2]
%8 = output "y" (%7) : f32[batch, 2, 2, 2]
)");
}

BOOST_AUTO_TEST_CASE(slices_of_slices_and_transposes) {
  BOOST_TEST(test::run(move_slices_up, R"(
%0 = input "x" () : f32[batch, seq, 4]
%1 = input "y" () : f32[batch, seq, 4]
%2 = concatenate (%0, %1) {axis=2} : f32[batch, seq, 8]
%3 = slice (%2) {axis=1, begin=2, length=5} : f32[batch, 5, 8]
%4 = transpose (%3) {perm=[1, 2, 0]} : f32[5, 8, batch]
%5 = slice (%4) {axis=0, begin=1, length=3} : f32[3, 8, batch]
%6 = output "z" (%5) : f32[3, 8, batch]
)",
                       2) == R"(%0 = input "x" () : f32[batch, seq, 4]
%1 = input "y" () : f32[batch, seq, 4]
%2 = slice (%0) {axis=1, begin=3, length=3} : f32[batch, 3, 4]
%3 = slice (%1) {axis=1, begin=3, length=3} : f32[batch, 3, 4]
%4 = concatenate (%2, %3) {axis=2} : f32[batch, 3, 8]
%5 = transpose (%4) {perm=[1, 2, 0]} : f32[3, 8, batch]
%6 = output "z" (%5) : f32[3, 8, batch]
)");
}

BOOST_AUTO_TEST_CASE(past_softcap_dropout_and_log_softmax) {
  BOOST_TEST(test::run(move_slices_up, R"(
%0 = input "x" () : f32[batch, seq, 4]
%1 = input "keep" () : bool[seq, 1]
%2 = softcap (%0) {factor=30} : f32[batch, seq, 4]
%3 = dropout (%2, %1) {p=0.5} : f32[batch, seq, 4]
%4 = log_softmax (%3) : f32[batch, seq, 4]
%5 = slice (%4) {axis=1, begin=seq - 1, length=1} : f32[batch, 1, 4]
%6 = output "y" (%5) : f32[batch, 1, 4]
)",
                       1) == R"(%0 = input "x" () : f32[batch, seq, 4]
%1 = input "keep" () : bool[seq, 1]
%2 = slice (%0) {axis=1, begin=seq - 1, length=1} : f32[batch, 1, 4]
%3 = softcap (%2) {factor=30} : f32[batch, 1, 4]
%4 = slice (%1) {axis=0, begin=seq - 1, length=1} : bool[1, 1]
%5 = dropout (%3, %4) {p=0.5} : f32[batch, 1, 4]
%6 = log_softmax (%5) : f32[batch, 1, 4]
%7 = output "y" (%6) : f32[batch, 1, 4]
)");
}

BOOST_AUTO_TEST_CASE(what_broadcasts_stays_whole) {
  const std::string text = test::run(move_slices_up, R"(
%0 = input "x" () : f32[batch, seq, 4]
%1 = input "row" () : f32[4]
%2 = input "one" () : f32[batch, 1, 4]
%3 = add (%0, %1) : f32[batch, seq, 4]
%4 = multiply (%2, %3) : f32[batch, seq, 4]
%5 = slice (%4) {axis=1, begin=0, length=1} : f32[batch, 1, 4]
%6 = output "y" (%5) : f32[batch, 1, 4]
)",
                                     1);
  BOOST_TEST(text.find("%3 = slice (%0) {axis=1, begin=0, length=1} : f32[batch, 1, 4]\n%4 = add (%3, %1)") !=
             std::string::npos);
  BOOST_TEST(text.find("multiply (%2, %4)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_stops_it) {
  const std::string x = "%0 = input \"x\" () : f32[batch, seq, 4]\n";
  const auto after = [&](const std::string& node, const std::string& axis) {
    return x + node + "%5 = slice (%4) {axis=" + axis + ", begin=0, length=1} : f32[" +
           (axis == "1" ? "batch, 1, 4" : "batch, seq, 1") + "]\n%6 = output \"y\" (%5) : f32[" +
           (axis == "1" ? "batch, 1, 4" : "batch, seq, 1") + "]\n";
  };
  // The axis is mixed; another reader; along the joined axis.
  test::unchanged(move_slices_up, after("%4 = softmax (%0) : f32[batch, seq, 4]\n", "2"));
  test::unchanged(move_slices_up, after("%4 = rms_norm (%0) {has_weight=0, eps=1e-06} : f32[batch, seq, 4]\n", "2"));
  test::unchanged(move_slices_up, after("%1 = parameter \"w\" () : f32[4, 4]\n%4 = linear (%0, %1) {has_bias=0, "
                                        "has_residual=0, function=none} : f32[batch, seq, 4]\n",
                                        "2"));
  test::unchanged(move_slices_up, after("%4 = softmax (%0) : f32[batch, seq, 4]\n%7 = output \"all\" (%4) : f32[batch, "
                                        "seq, 4]\n",
                                        "1"));
  // A state that may be written before the slice.
  test::unchanged(move_slices_up, R"(%0 = state "s" () : f32[8, 4]
%1 = input "x" () : f32[1, 4]
%2 = activation (%0) {function=relu} : f32[8, 4]
%3 = append (%0, %1) {axis=0, offset=0} : f32[1, 4]
%4 = slice (%2) {axis=0, begin=0, length=2} : f32[2, 4]
%5 = output "y" (%4) : f32[2, 4]
)");
}

BOOST_AUTO_TEST_CASE(the_head_works_on_one_row_of_each_sequence) {
  // What it saves: floating-point operations of the last block and the head, seq times fewer.
  Graph before = last_token(), after = move_slices_up(last_token());
  const auto flops = [](Graph& g) {
    const Dim f = cost_of(g).flops;
    std::vector<std::int64_t> sizes(g.strings.entries.size(), 0);
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = g.strings[static_cast<std::int32_t>(i)] == "seq" ? 64 : 2;
    return g.dims.view().evaluate(f, sizes);
  };
  BOOST_TEST(flops(before) == 64 * flops(after));
}

BOOST_AUTO_TEST_SUITE_END()

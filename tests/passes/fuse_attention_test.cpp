#include <treadle/models/examples.hpp>
#include <treadle/passes/fuse_attention.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

static_assert([] {
  const Graph g = fuse_attention(models::written_out());
  return g.count(op::attention) == 1 && g.count(op::matmul) == 0 && g.count(op::softmax) == 0 &&
         g.count(op::mask_to_bias) == 0;
}());

const std::string rank_4 = R"(%0 = input "q" () : f32[batch, 2, seq, 8]
%1 = input "k" () : f32[batch, 2, seq, 8]
%2 = input "v" () : f32[batch, 2, seq, 6]
%3 = input "bias" () : f32[seq, seq]
%4 = mask () {has_tensor=0, expression=`k <= q`, q_len=seq, k_len=seq} : bool[1, 1, seq, seq]
%5 = mask () {has_tensor=0, expression=`(q - k) <= 3`, q_len=seq, k_len=seq} : bool[1, 1, seq, seq]
)";
const std::string q = "f32[batch, 2, seq, 8]", kt = "f32[batch, 2, 8, seq]", scores = "f32[batch, 2, seq, seq]",
                  out = "f32[batch, 2, seq, 6]";

/// The nodes from %10 on, ending with %30 = softmax's input, completed and fused; gives the text of what changed.
std::string fused(const std::string& middle, int rewrites = 1) {
  std::string source = rank_4 + middle;
  source += "%31 = softmax (%30) : " + scores + "\n%32 = matmul (%31, %2) : " + out +
            "\n%33 = output \"y\" (%32) : " + out + "\n";
  // Masks that the case does not use must not be in the way.
  source += "%34 = output \"m\" (%4) : bool[1, 1, seq, seq]\n%35 = output \"n\" (%5) : bool[1, 1, seq, seq]\n";
  const std::string text = test::run(fuse_attention, source, rewrites);
  const std::string start = to_text(parse_graph(rank_4));
  BOOST_TEST(text.substr(0, start.size()) == start);
  const auto end = text.find("%", text.find("output \"y\""));
  const std::string changed = text.substr(start.size(), end - start.size());
  return changed.substr(0, changed.rfind("output \"y\""));
}
std::string attention_line(int number, const std::string& inputs, const std::string& attributes,
                           const std::string& before = "") {
  const std::string n = std::to_string(number), next = std::to_string(number + 1);
  return before + "%" + n + " = attention (" + inputs + ") {" + attributes + ", has_sink=0} : " + out +
         ", f32[batch, 2, seq]\n%" + next + " = ";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fuse_attention_pass)

BOOST_AUTO_TEST_CASE(without_scale_and_mask) {
  BOOST_TEST(fused("%10 = transpose (%1) {perm=[0, 1, 3, 2]} : " + kt + "\n%30 = matmul (%0, %10) : " + scores +
                   "\n") == attention_line(6, "%0, %1, %2", "scale=1, has_mask=0, has_bias=0"));
}

BOOST_AUTO_TEST_CASE(scales_everywhere) {
  const std::string expected = attention_line(6, "%0, %1, %2", "scale=0.25, has_mask=0, has_bias=0");
  const std::string t = "%11 = transpose (%1) {perm=[0, 1, 3, 2]} : " + kt + "\n";
  BOOST_TEST(fused(t + "%12 = matmul (%0, %11) : " + scores + "\n%30 = scale (%12) {factor=0.25} : " + scores + "\n") ==
             expected);
  BOOST_TEST(fused(t + "%10 = scale (%0) {factor=0.25} : " + q + "\n%30 = matmul (%10, %11) : " + scores + "\n") ==
             expected);
  BOOST_TEST(fused(t + "%12 = scale (%11) {factor=0.25} : " + kt + "\n%30 = matmul (%0, %12) : " + scores + "\n") ==
             expected);
  BOOST_TEST(fused("%10 = scale (%1) {factor=0.25} : " + q + "\n%11 = transpose (%10) {perm=[0, 1, 3, 2]} : " + kt +
                   "\n%30 = matmul (%0, %11) : " + scores + "\n") == expected);
  BOOST_TEST(fused("%9 = scale (%0) {factor=0.5} : " + q + "\n%10 = scale (%1) {factor=0.25} : " + q +
                   "\n%11 = transpose (%10) {perm=[0, 1, 3, 2]} : " + kt + "\n%12 = matmul (%9, %11) : " + scores +
                   "\n%30 = scale (%12) {factor=2} : " + scores + "\n") == expected);
}

BOOST_AUTO_TEST_CASE(masks_by_addition_and_by_selection) {
  const std::string start = "%11 = transpose (%1) {perm=[0, 1, 3, 2]} : " + kt +
                            "\n%12 = matmul (%0, %11) : " + scores + "\n%13 = scale (%12) {factor=0.5} : " + scores +
                            "\n";
  const std::string expected = attention_line(6, "%0, %1, %2, %4", "scale=0.5, has_mask=1, has_bias=0");
  const std::string bias = "%14 = mask_to_bias (%4) : f32[1, 1, seq, seq]\n";
  BOOST_TEST(fused(start + bias + "%30 = add (%13, %14) : " + scores + "\n") == expected);
  BOOST_TEST(fused(start + bias + "%30 = add (%14, %13) : " + scores + "\n") == expected);
  BOOST_TEST(fused(start + "%30 = select (%4, %13) {value=-inf} : " + scores + "\n") == expected);
}

BOOST_AUTO_TEST_CASE(biases_are_scaled_by_what_came_after_them) {
  const std::string start =
      "%11 = transpose (%1) {perm=[0, 1, 3, 2]} : " + kt + "\n%12 = matmul (%0, %11) : " + scores + "\n";
  BOOST_TEST(fused(start + "%30 = add (%12, %3) : " + scores + "\n") ==
             attention_line(6, "%0, %1, %2, %3", "scale=1, has_mask=0, has_bias=1"));
  BOOST_TEST(fused(start + "%13 = add (%3, %12) : " + scores + "\n%14 = select (%4, %13) {value=-inf} : " + scores +
                   "\n%30 = scale (%14) {factor=0.5} : " + scores + "\n") ==
             attention_line(7, "%0, %1, %2, %4, %6", "scale=0.5, has_mask=1, has_bias=1",
                            "%6 = scale (%3) {factor=0.5} : f32[seq, seq]\n"));
}

BOOST_AUTO_TEST_CASE(a_second_mask_is_added) {
  BOOST_TEST(fused("%11 = transpose (%1) {perm=[0, 1, 3, 2]} : " + kt + "\n%12 = matmul (%0, %11) : " + scores +
                   "\n%13 = select (%5, %12) {value=-inf} : " + scores + "\n%30 = select (%4, %13) {value=-inf} : " +
                   scores + "\n") == attention_line(7, "%0, %1, %2, %4, %6", "scale=1, has_mask=1, has_bias=1",
                                                    "%6 = mask_to_bias (%5) : f32[1, 1, seq, seq]\n"));
}

BOOST_AUTO_TEST_CASE(keys_that_come_transposed) {
  const std::string source = R"(%0 = input "q" () : f32[batch, 2, seq, 8]
%1 = input "keys" () : f32[batch, 2, 8, seq]
%2 = input "v" () : f32[batch, 2, seq, 6]
%3 = matmul (%0, %1) : f32[batch, 2, seq, seq]
%4 = softmax (%3) : f32[batch, 2, seq, seq]
%5 = matmul (%4, %2) : f32[batch, 2, seq, 6]
%6 = output "y" (%5) : f32[batch, 2, seq, 6]
)";
  BOOST_TEST(test::run(fuse_attention, source, 1) == R"(%0 = input "q" () : f32[batch, 2, seq, 8]
%1 = input "keys" () : f32[batch, 2, 8, seq]
%2 = input "v" () : f32[batch, 2, seq, 6]
%3 = transpose (%1) {perm=[0, 1, 3, 2]} : f32[batch, 2, seq, 8]
%4 = attention (%0, %3, %2) {scale=1, has_mask=0, has_bias=0, has_sink=0} : f32[batch, 2, seq, 6], f32[batch, 2, seq]
%5 = output "y" (%4) : f32[batch, 2, seq, 6]
)");
}

BOOST_AUTO_TEST_CASE(without_heads_a_head_of_its_own) {
  BOOST_TEST(test::run(fuse_attention, R"(
%0 = input "x" () : f32[batch, seq, 8]
%1 = input "bias" () : f32[batch, seq, seq]
%2 = transpose (%0) {perm=[0, 2, 1]} : f32[batch, 8, seq]
%3 = matmul (%0, %2) : f32[batch, seq, seq]
%4 = add (%3, %1) : f32[batch, seq, seq]
%5 = softmax (%4) : f32[batch, seq, seq]
%6 = matmul (%5, %0) : f32[batch, seq, 8]
%7 = output "y" (%6) : f32[batch, seq, 8]
)",
                       1) == R"(%0 = input "x" () : f32[batch, seq, 8]
%1 = input "bias" () : f32[batch, seq, seq]
%2 = split_heads (%0) {heads=1} : f32[batch, 1, seq, 8]
%3 = split_heads (%0) {heads=1} : f32[batch, 1, seq, 8]
%4 = split_heads (%0) {heads=1} : f32[batch, 1, seq, 8]
%5 = split_heads (%1) {heads=1} : f32[batch, 1, seq, seq]
%6 = attention (%2, %3, %4, %5) {scale=1, has_mask=0, has_bias=1, has_sink=0} : f32[batch, 1, seq, 8], f32[batch, 1, seq]
%7 = merge_heads (%6) : f32[batch, seq, 8]
%8 = output "y" (%7) : f32[batch, seq, 8]
)");
  BOOST_TEST(test::run(fuse_attention, R"(
%0 = input "x" () : f32[seq, 8]
%2 = transpose (%0) {perm=[1, 0]} : f32[8, seq]
%3 = matmul (%0, %2) : f32[seq, seq]
%5 = softmax (%3) : f32[seq, seq]
%6 = matmul (%5, %0) : f32[seq, 8]
%7 = output "y" (%6) : f32[seq, 8]
)",
                       1)
                 .find("attention (%2, %4, %6)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_attention_stays) {
  const std::string start =
      "%11 = transpose (%1) {perm=[0, 1, 3, 2]} : " + kt + "\n%12 = matmul (%0, %11) : " + scores + "\n";
  const auto stays = [&](const std::string& middle) {
    const std::string text = fused(start + middle, 0);
    BOOST_TEST(text.find("attention") == std::string::npos);
    BOOST_TEST(text.find("softmax") != std::string::npos);
  };
  stays("%30 = scale (%12) {factor=2} : " + scores + "\n%14 = output \"probe\" (%30) : " + scores +
        "\n");                                                         // scores are read
  stays("%30 = select (%4, %12) {value=-10000} : " + scores + "\n");   // not −inf
  stays("%30 = scale (%12) {factor=-1} : " + scores + "\n");           // turns −inf around
  stays("%30 = activation (%12) {function=tanh} : " + scores + "\n");  // a soft cap
  stays("%13 = output \"raw\" (%12) : " + scores + "\n%30 = select (%4, %12) {value=-inf} : " + scores +
        "\n");  // the product is read
}

BOOST_AUTO_TEST_CASE(weights_that_are_read_stay) {
  test::unchanged(fuse_attention, R"(
%0 = input "x" () : f32[batch, 2, seq, 8]
%1 = transpose (%0) {perm=[0, 1, 3, 2]} : f32[batch, 2, 8, seq]
%2 = matmul (%0, %1) : f32[batch, 2, seq, seq]
%3 = softmax (%2) : f32[batch, 2, seq, seq]
%4 = matmul (%3, %0) : f32[batch, 2, seq, 8]
%5 = output "y" (%4) : f32[batch, 2, seq, 8]
%6 = output "weights" (%3) : f32[batch, 2, seq, seq]
)");
}

BOOST_AUTO_TEST_CASE(shapes_that_the_attention_node_does_not_know_stay) {
  // A bias that widens the scores, and keys that broadcast over the batch.
  test::unchanged(fuse_attention, R"(
%0 = input "x" () : f32[1, 1, seq, 8]
%1 = input "bias" () : f32[1, 4, seq, seq]
%2 = transpose (%0) {perm=[0, 1, 3, 2]} : f32[1, 1, 8, seq]
%3 = matmul (%0, %2) : f32[1, 1, seq, seq]
%4 = add (%3, %1) : f32[1, 4, seq, seq]
%5 = softmax (%4) : f32[1, 4, seq, seq]
%6 = matmul (%5, %0) : f32[1, 4, seq, 8]
%7 = output "y" (%6) : f32[1, 4, seq, 8]
)");
  test::unchanged(fuse_attention, R"(
%0 = input "q" () : f32[batch, 2, seq, 8]
%1 = input "k" () : f32[1, 2, seq, 8]
%2 = transpose (%1) {perm=[0, 1, 3, 2]} : f32[1, 2, 8, seq]
%3 = matmul (%0, %2) : f32[batch, 2, seq, seq]
%4 = softmax (%3) : f32[batch, 2, seq, seq]
%5 = matmul (%4, %1) : f32[batch, 2, seq, 8]
%6 = output "y" (%5) : f32[batch, 2, seq, 8]
)");
}

BOOST_AUTO_TEST_CASE(one_key_head_for_all_queries) {
  const Graph g = fuse_attention(parse_graph(R"(
%0 = input "q" () : f32[batch, 4, seq, 8]
%1 = input "k" () : f32[batch, 1, seq, 8]
%2 = transpose (%1) {perm=[0, 1, 3, 2]} : f32[batch, 1, 8, seq]
%3 = matmul (%0, %2) : f32[batch, 4, seq, seq]
%4 = softmax (%3) : f32[batch, 4, seq, seq]
%5 = matmul (%4, %1) : f32[batch, 4, seq, 8]
%6 = output "y" (%5) : f32[batch, 4, seq, 8]
)"));
  BOOST_TEST(g.count(op::attention) == 1);
  BOOST_TEST(!verify(g));
}

BOOST_AUTO_TEST_SUITE_END()

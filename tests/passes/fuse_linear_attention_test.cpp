#include <treadle/models/examples.hpp>
#include <treadle/ops/constant.hpp>
#include <treadle/passes/fuse_linear_attention.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

/// Linear attention as its equations say it.
constexpr Graph written(bool is_causal, bool associated, double eps) {
  Builder b;
  const Node q = b.input("q", f32, {batch, 2, seq, 8}), k = b.input("k", f32, {batch, 2, seq, 8}),
             v = b.input("v", f32, {batch, 2, seq, 6});
  const Node fq = activate(q, activation::elu_plus_one), t = transpose(activate(k, activation::elu_plus_one));
  const Node ones = full(b, {1, 1, seq, 1}, 1);
  Node n, d;
  if (associated) {
    n = matmul(fq, matmul(t, v));
    d = matmul(fq, matmul(t, ones));
  } else {
    Node s = matmul(fq, t);
    if (is_causal) s = select(mask_node(b, causal, seq, seq), s, 0);
    n = matmul(s, v);
    d = matmul(s, ones);
  }
  if (eps != 0) d = d + full(b, {1}, eps);
  b.output("y", n * activate(scale(activate(d, activation::log), -1), activation::exp));
  return b.finish();
}

constexpr bool found(bool is_causal, bool associated, double eps) {
  const Graph g = fuse_linear_attention(written(is_causal, associated, eps));
  if (verify(g) || g.count(op::matmul) != 0 || g.count(op::constant) != 0 || g.count(op::activation) != 0) return false;
  for (std::int32_t n = 0; n < g.view().size(); ++n)
    if (g.nodes[n].op == op::linear_attention)
      return g.view().get_integer(n, key::causal) == is_causal && g.view().get_number(n, key::eps) == eps;
  return false;
}
static_assert(found(false, false, 0));
static_assert(found(true, false, 0));
static_assert(found(true, false, 0.5));
static_assert(found(false, true, 0));
static_assert(found(false, true, 0.25));

const std::string start = R"(%0 = input "q" () : f32[seq, 4]
%1 = input "k" () : f32[seq, 4]
%2 = input "v" () : f32[seq, 3]
%3 = activation (%0) {function=relu} : f32[seq, 4]
%4 = activation (%1) {function=relu} : f32[seq, 4]
%5 = transpose (%4) {perm=[1, 0]} : f32[4, seq]
%6 = matmul (%3, %5) : f32[seq, seq]
%7 = constant () {value=1} : f32[seq, 1]
%8 = matmul (%6, %2) : f32[seq, 3]
)";
const std::string end = R"(%10 = activation (%9) {function=log} : f32[seq, 1]
%11 = scale (%10) {factor=-1} : f32[seq, 1]
%12 = activation (%11) {function=exp} : f32[seq, 1]
%13 = multiply (%12, %8) : f32[seq, 3]
%14 = output "y" (%13) : f32[seq, 3]
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(fuse_linear_attention_pass)

BOOST_AUTO_TEST_CASE(without_heads_a_head_of_its_own) {
  BOOST_TEST(test::run(fuse_linear_attention, start + "%9 = matmul (%6, %7) : f32[seq, 1]\n" + end, 1) ==
             R"(%0 = input "q" () : f32[seq, 4]
%1 = input "k" () : f32[seq, 4]
%2 = input "v" () : f32[seq, 3]
%3 = split_heads (%0) {heads=1} : f32[1, seq, 4]
%4 = split_heads (%3) {heads=1} : f32[1, 1, seq, 4]
%5 = split_heads (%1) {heads=1} : f32[1, seq, 4]
%6 = split_heads (%5) {heads=1} : f32[1, 1, seq, 4]
%7 = split_heads (%2) {heads=1} : f32[1, seq, 3]
%8 = split_heads (%7) {heads=1} : f32[1, 1, seq, 3]
%9 = linear_attention (%4, %6, %8) {causal=0, eps=0, function=relu, has_mask=0} : f32[1, 1, seq, 3]
%10 = merge_heads (%9) : f32[1, seq, 3]
%11 = merge_heads (%10) : f32[seq, 3]
%12 = output "y" (%11) : f32[seq, 3]
)");
}

BOOST_AUTO_TEST_CASE(what_is_something_else_stays) {
  // The weights are read; a column of twos; another denominator.
  test::unchanged(fuse_linear_attention, start + "%9 = matmul (%6, %7) : f32[seq, 1]\n" + end +
                                             "%15 = output \"weights\" (%6) : f32[seq, seq]\n");
  std::string twos = start;
  twos.replace(twos.find("value=1"), 7, "value=2");
  test::unchanged(fuse_linear_attention, twos + "%9 = matmul (%6, %7) : f32[seq, 1]\n" + end);
  test::unchanged(fuse_linear_attention, start +
                                             "%20 = matmul (%5, %7) : f32[4, 1]\n%9 = matmul (%3, %20) : f32[seq, "
                                             "1]\n" +
                                             end);
}

BOOST_AUTO_TEST_CASE(other_feature_maps_stay_in_front) {
  // silu on both sides; another on each side; none at all.
  for (const auto& [query, keys] :
       {std::pair{"{function=silu}", "{function=silu}"}, {"{function=relu}", "{function=exp}"}}) {
    std::string other = start;
    other.replace(other.find("{function=relu}"), 15, query);
    other.replace(other.find("(%1) {function=relu}"), 20, std::string("(%1) ") + keys);
    const Graph g = fuse_linear_attention(parse_graph(other + "%9 = matmul (%6, %7) : f32[seq, 1]\n" + end));
    BOOST_TEST(!verify(g));
    BOOST_TEST(g.count(op::matmul) == 0);
    BOOST_TEST(g.count(op::activation) == 2);
    for (std::int32_t n = 0; n < g.view().size(); ++n)
      if (g.nodes[n].op == op::linear_attention)
        BOOST_TEST(g.view().get_integer(n, key::function, -1) == static_cast<std::int64_t>(activation::none));
    BOOST_TEST(g.count(op::linear_attention) == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_mask_that_is_not_causal_stays) {
  for (const bool fuses : {true, false}) {
    const std::string mask = fuses ? "k <= q" : "(q - k) <= 3";
    const Graph g = fuse_linear_attention(parse_graph(
        R"(%0 = input "q" () : f32[1, 1, seq, 4]
%1 = input "v" () : f32[1, 1, seq, 3]
%2 = activation (%0) {function=elu_plus_one} : f32[1, 1, seq, 4]
%3 = transpose (%2) {perm=[0, 1, 3, 2]} : f32[1, 1, 4, seq]
%4 = matmul (%2, %3) : f32[1, 1, seq, seq]
%5 = mask () {has_tensor=0, expression=`)" +
        mask + R"(`, q_len=seq, k_len=seq} : bool[1, 1, seq, seq]
%6 = select (%5, %4) {value=0} : f32[1, 1, seq, seq]
%7 = constant () {value=1} : f32[1, 1, seq, 1]
%8 = matmul (%6, %1) : f32[1, 1, seq, 3]
%9 = matmul (%6, %7) : f32[1, 1, seq, 1]
%10 = activation (%9) {function=log} : f32[1, 1, seq, 1]
%11 = scale (%10) {factor=-1} : f32[1, 1, seq, 1]
%12 = activation (%11) {function=exp} : f32[1, 1, seq, 1]
%13 = multiply (%8, %12) : f32[1, 1, seq, 3]
%14 = output "y" (%13) : f32[1, 1, seq, 3]
)"));
    BOOST_TEST(g.count(op::linear_attention) == (fuses ? 1 : 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()

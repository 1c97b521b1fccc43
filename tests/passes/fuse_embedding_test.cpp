#include <treadle/models/examples.hpp>
#include <treadle/passes/fuse_embedding.hpp>

#include "support.hpp"

using namespace treadle;

namespace {

static_assert([] {
  const Graph g = fuse_embedding(models::tiny_gpt());
  return !verify(g) && g.count(op::embedding_sum) == 1 && g.count(op::embedding) == 0;
}());

const std::string start = R"(%0 = input "ids" () : i32[batch, seq]
%1 = parameter "table" () : f32[9, 4]
%2 = parameter "wpe" () : f32[16, 4]
%3 = positions (%2) {offset=0, length=seq} : f32[seq, 4]
)";

}  // namespace

BOOST_AUTO_TEST_SUITE(fuse_embedding_pass)

BOOST_AUTO_TEST_CASE(embedding_scale_positions_and_norm) {
  BOOST_TEST(test::run(fuse_embedding, start + R"(
%4 = embedding "wte" (%1, %0) : f32[batch, seq, 4]
%5 = scale (%4) {factor=2} : f32[batch, seq, 4]
%6 = add (%3, %5) : f32[batch, seq, 4]
%7 = parameter "g" () : f32[4]
%8 = parameter "b" () : f32[4]
%9 = layer_norm (%6, %7, %8) {has_weight=1, has_bias=1, eps=1e-05} : f32[batch, seq, 4]
%10 = output "y" (%9) : f32[batch, seq, 4]
)",
                       2) == start + R"(%4 = parameter "g" () : f32[4]
%5 = parameter "b" () : f32[4]
%6 = embedding_sum "wte" (%1, %0, %3, %4, %5) {factor=2, normalise=1, has_weight=1, has_bias=1, eps=1e-05} : f32[batch, seq, 4]
%7 = output "y" (%6) : f32[batch, seq, 4]
)");
}

BOOST_AUTO_TEST_CASE(a_sum_that_is_read_keeps_its_norm_apart) {
  BOOST_TEST(test::run(fuse_embedding, start + R"(
%4 = embedding (%1, %0) : f32[batch, seq, 4]
%5 = add (%4, %3) : f32[batch, seq, 4]
%6 = rms_norm (%5) {has_weight=0, eps=1e-06} : f32[batch, seq, 4]
%7 = multiply (%5, %6) : f32[batch, seq, 4]
%8 = output "y" (%7) : f32[batch, seq, 4]
)",
                       1) == start + R"(%4 = embedding_sum (%1, %0, %3) {normalise=0} : f32[batch, seq, 4]
%5 = rms_norm (%4) {has_weight=0, eps=1e-06} : f32[batch, seq, 4]
%6 = multiply (%4, %5) : f32[batch, seq, 4]
%7 = output "y" (%6) : f32[batch, seq, 4]
)");
}

BOOST_AUTO_TEST_CASE(two_embeddings_and_then_positions) {
  // As in BERT: the segment's embedding is what is added; positions stay an addition.
  const Graph g = fuse_embedding(parse_graph(start + R"(
%4 = embedding (%1, %0) : f32[batch, seq, 4]
%5 = input "segments" () : i32[batch, seq]
%6 = parameter "segment" () : f32[2, 4]
%7 = embedding (%6, %5) : f32[batch, seq, 4]
%8 = add (%4, %7) : f32[batch, seq, 4]
%9 = add (%8, %3) : f32[batch, seq, 4]
%10 = output "y" (%9) : f32[batch, seq, 4]
)"));
  for (const std::string& v : violations(g)) BOOST_ERROR(v);
  BOOST_TEST(g.count(op::embedding_sum) == 1);
  BOOST_TEST(g.count(op::embedding) == 1);
  BOOST_TEST(g.count(op::add) == 1);
}

BOOST_AUTO_TEST_CASE(what_is_added_must_fit) {
  const auto stays = [](const std::string& added, const std::string& type) {
    test::unchanged(fuse_embedding, start + "%4 = embedding (%1, %0) : f32[batch, seq, 4]\n%5 = input \"z\" () : f32[" +
                                        added + "]\n%6 = add (%4, %5) : f32[" + type +
                                        "]\n%7 = output \"y\" (%6) : f32[" + type +
                                        "]\n%8 = output \"p\" (%3) : f32[seq, 4]\n");
  };
  stays("4", "batch, seq, 4");            // one row for all
  stays("batch, 1, 4", "batch, seq, 4");  // one row for each sequence
  stays("3, batch, seq, 4", "3, batch, seq, 4");
}

BOOST_AUTO_TEST_CASE(each_row_is_written_once) {
  const auto bytes = [](Graph g) {
    const Dim all = cost_of(g).bytes;
    return *g.dims.constant(all);
  };
  const auto model = [] {
    Builder b;
    const Node ids = b.input("ids", i32, {8, 16});
    const Node x = embedding("wte", ids, {.vocabulary = 9, .width = 4}) + learned_positions("wpe", {.length = 16});
    b.output("y", layer_norm("ln", x));
    return b.finish();
  };
  BOOST_TEST(bytes(model()) - bytes(fuse_embedding(model())) == 4 * (4 * 8 * 16 * 4));  // two results, written and read
}

BOOST_AUTO_TEST_SUITE_END()

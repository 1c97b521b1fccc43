// Lookups read any node: tables that a run computes, in masks, scores and written-out masks, inside repeats too.

#include "op_check.hpp"

#include <treadle/ops/reshape.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

const Mask same_group = mask_mod([](auto b, auto, auto q, auto k) {
  return scalar::lookup<i32>("group", b, q) == scalar::lookup<i32>("group", b, k);
});

struct Given {
  Builder g;
  Node q, k, v, tokens;
  Given()
      : q(g.input("q", f32, {2, 2, n, 8})),
        k(g.input("k", f32, {2, 2, n, 8})),
        v(g.input("v", f32, {2, 2, n, 8})),
        tokens(g.input("tokens", i32, {2, n})) {}
  Graph with(Node y) {
    g.output("y", y);
    return g.finish();
  }
};

void check_all(const Graph& g) {
  for (const std::int64_t length : {0, 1, 15, 17, 70}) {
    BOOST_TEST_CONTEXT(length << " tokens") {
      check(g, {{"n", length}});
      check(optimise(g), {{"n", length}});
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(computed_tables)

BOOST_AUTO_TEST_CASE(a_mask_reads_what_the_run_computes) {
  Given x;
  // i64 ids by argmax over a table's rows; the same name for other nodes in another layer.
  const Node table = x.g.parameter("table", {x.g.dim_number(5), x.g.dim_number(3)}),
             other = x.g.parameter("other", {x.g.dim_number(5), x.g.dim_number(3)});
  AttentionOptions first, second;
  first.mask = second.mask = same_group & causal;
  first.tables = {{"group", argmax(gather(table, x.tokens))}};
  second.tables = {{"group", argmax(gather(other, x.tokens))}};
  const Node y = attention(x.q, x.k, x.v, first);
  check_all(x.with(attention(y, x.k, x.v, second)));
}

BOOST_AUTO_TEST_CASE(it_is_what_the_same_ids_as_an_input_give) {
  Given x;
  const Node ids = x.g.input("ids", i32, {2, n});
  AttentionOptions given, computed;
  given.mask = computed.mask = same_group;
  given.tables = {{"group", ids}};
  computed.tables = {{"group", gather(ids, argsort(argsort(ids)), {.axis = 1, .batch_dims = 1})}};
  x.g.output("given", attention(x.q, x.k, x.v, given));
  computed.tables = {{"group", concatenate({slice(ids, 1, 0, 3), slice(ids, 1, 3, n - 3)}, 1)}};
  const Graph g = x.with(attention(x.q, x.k, x.v, computed));
  BoundModel model(g, {}, {.backend = "simd"});
  model.bind_dims({{"n", 40}});
  for (const std::uint64_t seed : {1, 2, 3}) {  // other ids in every run
    const Tensors in = inputs_of(g, {{"n", 40}}, seed), out = outputs_of(g, {{"n", 40}});
    model.run(named(in), named(out));
    BOOST_TEST(values(out).at("y") == values(out).at("given"), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(scores_and_written_out_masks) {
  Given x;
  const Node slopes = sigmoid(reshape(mean_pooling(x.q), {2, 2 * 8}));
  AttentionOptions o;
  o.score =
      score_mod([](auto score, auto b, auto h, auto q, auto k) { return score - lookup("slope", b, h) * abs(q - k); });
  o.tables = {{"slope", slopes}};
  x.g.output("scored", attention(x.q, x.k, x.v, o));
  const Node order = argsort(x.tokens);
  const Mask early = mask_mod([](auto b, auto, auto q, auto k) {
    return scalar::lookup<i32>("order", b, k) <= scalar::lookup<i32>("order", b, q);
  });
  const Node m = mask_node(x.g, early, ScoreLengths{x.g.intern(n), x.g.intern(n)}, Tables{{"order", order}});
  check_all(x.with(select(m, matmul(x.q, transpose(x.k)), 0.5)));
}

BOOST_AUTO_TEST_CASE(inside_a_repeat) {
  Given x;
  const Node y = repeat("layer", 3, x.q, [&](Node h) {
    AttentionOptions o;
    o.mask = causal & mask_mod([](auto b, auto, auto q, auto k) {
               return scalar::lookup<i32>("best", b, q) <= scalar::lookup<i32>("best", b, k) + 1;
             });
    // Which of a few position-wise sums is the largest: it differs from iteration to iteration by a parameter.
    const Node offsets = x.g.parameter("offsets", {x.g.dim_number(5), x.g.dim_number(4)});
    o.tables = {{"best", argmax(gather(offsets, x.tokens))}};
    return h + attention(h, x.k, x.v, o);
  });
  check_all(x.with(y));
}

BOOST_AUTO_TEST_CASE(from_parameters_alone_they_are_computed_when_bound) {
  Given x;
  const Node weights = x.g.parameter("weights", {x.g.dim_number(2), x.g.dim_number(70), x.g.dim_number(3)});
  AttentionOptions o;
  o.mask = same_group;
  o.tables = {{"group", argmax(weights)}};
  const Graph g = x.with(attention(x.q, x.k, x.v, o));
  for (const std::int64_t length : {17, 70}) check(g, {{"n", length}});
  BoundModel model(g, Parameters::random(g, 5), {.backend = "simd"});
  model.bind_dims({{"n", 40}});
  int at_run = 0;
  for (const StepInfo& s : model.steps()) at_run += s.useful_flops > 0;
  BOOST_TEST(at_run == 1);  // the attention
}

BOOST_AUTO_TEST_CASE(counts_of_such_masks_are_upper_bounds) {
  Given x;
  AttentionOptions o;
  o.mask = same_group;
  o.tables = {{"group", argsort(x.tokens)}};
  const Graph g = x.with(attention(x.q, x.k, x.v, o));
  BoundModel model(g, {}, {.backend = "simd"});
  model.bind_dims({{"n", 30}});
  const Tensors in = inputs_of(g, {{"n", 30}}, 1), out = outputs_of(g, {{"n", 30}});
  model.run(named(in), named(out));
  const auto bounded = [&] {
    for (const StepInfo& s : model.steps())
      if (s.op == op::attention) return s.upper_bound && s.useful_flops == 2.0 * 2 * 30 * 30 * 32;
    return false;
  };
  BOOST_TEST(bounded());
  // So are those of a tensor that the run computes.
  Given y;
  AttentionOptions largest;
  largest.mask_tensor = top_k_mask(matmul(y.q, transpose(y.k)), 3);
  const Graph of_tensor = y.with(attention(y.q, y.k, y.v, largest));
  model = BoundModel(of_tensor, {}, {.backend = "simd"});
  model.bind_dims({{"n", 30}});
  BOOST_TEST(bounded());
}

BOOST_AUTO_TEST_CASE(refusals) {
  const auto mistake = [](auto add) {
    Given x;
    const Graph g = x.with(add(x));
    return g.error ? std::string(g.strings[g.error.got]) + "; " + std::string(g.strings[g.error.expected]) : "none";
  };
  BOOST_TEST(mistake([](Given& x) {
               AttentionOptions o;
               o.mask = same_group;
               return attention(x.q, x.k, x.v, o);
             }) == "lookup \"group\"; the name of an input");
  BOOST_TEST(mistake([](Given& x) {
               x.g.input("group", i32, {2, n});
               AttentionOptions o;
               o.mask = same_group &
                        mask_mod([](auto b, auto, auto, auto k) { return scalar::lookup<i32>("other", b, k) > 0; });
               o.tables = {{"other", Node{&x.g, {4, 0}}}};  // the input named group
               return attention(x.q, x.k, x.v, o);
             }) == "table \"other\" given as the input \"group\"; names that no other table of the function has");
  // A table of the wrong type or rank is refused when the model is bound.
  const auto bind = [](Node (*make)(Given&)) {
    Given x;
    AttentionOptions o;
    o.mask = same_group;
    o.tables = {{"group", make(x)}};
    const Graph g = x.with(attention(x.q, x.k, x.v, o));
    BOOST_REQUIRE(!g.error);
    return error_of([&] {
      BoundModel model(g, Parameters::random(g, 1), {.backend = "simd"});
      model.bind_dims({{"n", 4}});
    });
  };
  BOOST_TEST(bind([](Given& x) {
               return mean_pooling(mean_pooling(x.q));
             }).find("table 'group' is f32; lookup<i32> reads i32 or bool") != std::string::npos);
  BOOST_TEST(bind([](Given& x) { return argmax(x.q); }).find("table 'group' has rank 3; the lookup has 2 indices") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

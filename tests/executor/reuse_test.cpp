// What a plan leaves out: steps that run once when a model is bound, copies for heads, and memory of operands that die.

#include "support.hpp"

#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

BoundModel bound(GraphView g, const Lengths& dims) {
  BoundModel m(g, Parameters::random(g, 1, values_of(dims)), {.backend = "simd"});
  m.bind_dims(dims);
  return m;
}
int steps_in_runs(const BoundModel& m) {
  const auto steps = m.steps();
  return static_cast<int>(std::count_if(steps.begin(), steps.end(), [](const StepInfo& s) { return !s.at_bind; }));
}
void check_results(GraphView g, const Lengths& dims) {
  const Parameters parameters = Parameters::random(g, 1, values_of(dims));
  const Results want = oracle(g, parameters, dims, 5);
  for (const std::string& isa : isas())
    BOOST_TEST(difference(run(g, parameters, dims, {.backend = "simd", .isa = isa}, 5), want) < 1e-5);
}

const std::string x = "%0 = input \"x\" () : f32[n, 32]\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(reuse)

BOOST_AUTO_TEST_CASE(what_depends_on_parameters_alone_runs_once) {
  const Graph g = parse_graph(x + R"(
%1 = parameter "a.bias" () : f32[32]
%2 = parameter "b.bias" () : f32[32]
%3 = add (%1, %2) : f32[32]
%4 = activation (%3) {function=tanh} : f32[32]
%5 = sinusoidal_positions () {offset=2, length=n, base=10000} : f32[n, 32]
%6 = multiply (%5, %4) : f32[n, 32]
%7 = multiply (%0, %6) : f32[n, 32]
%8 = output "y" (%7) : f32[n, 32]
)");
  const BoundModel m = bound(g, {{"n", 5}});
  BOOST_TEST(m.steps().size() == 4u);
  BOOST_TEST(steps_in_runs(m) == 1);
  BOOST_TEST(m.describe().find("once at bind") != std::string::npos);
  BOOST_TEST(m.arena_bytes() == 0u);
  check_results(g, {{"n", 5}});
  check_results(g, {{"n", 1}});
}

BOOST_AUTO_TEST_CASE(a_mask_that_never_changes_is_written_out_once) {
  const auto model = [](const std::string& mask) {
    return parse_graph("%0 = input \"x\" () : f32[n, n]\n%1 = input \"lengths\" () : i32[2]\n" + mask +
                       "%3 = mask_to_bias (%2) : f32[1, 1, n, n]\n%4 = activation (%3) {function=exp} : f32[1, 1, n, n]"
                       "\n%5 = multiply (%0, %4) : f32[1, 1, n, n]\n%6 = output \"y\" (%5) : f32[1, 1, n, n]\n");
  };
  const Graph fixed = model("%2 = mask () {has_tensor=0, expression=`k <= q`, q_len=n, k_len=n} : bool[1, 1, n, n]\n");
  BOOST_TEST(steps_in_runs(bound(fixed, {{"n", 9}})) == 1);
  check_results(fixed, {{"n", 9}});
  const Graph given = model(
      "%2 = mask (%1) {has_tensor=0, expression=`k < lookup<i32>(\"lengths\", 0)`, q_len=n, k_len=n} : bool[1, 1, n, "
      "n]\n");
  BOOST_TEST(steps_in_runs(bound(given, {{"n", 9}})) == 4);
  check_results(given, {{"n", 9}});
}

BOOST_AUTO_TEST_CASE(what_a_run_changes_and_what_is_large_is_made_in_every_run) {
  // One part of a concatenation comes from the caller; the result of the other part alone does not.
  const Graph joined = parse_graph(x + R"(
%1 = parameter "a.bias" () : f32[n, 32]
%2 = activation (%1) {function=tanh} : f32[n, 32]
%3 = concatenate (%2, %0) {axis=0} : f32[2*n, 32]
%4 = activation (%3) {function=tanh} : f32[2*n, 32]
%5 = output "y" (%4) : f32[2*n, 32]
)");
  const BoundModel m = bound(joined, {{"n", 3}});
  BOOST_TEST(m.steps().size() == 4u);
  BOOST_TEST(steps_in_runs(m) == 3);
  check_results(joined, {{"n", 3}});
  const auto large = [](const std::string& rows) {
    return parse_graph("%0 = parameter \"a.bias\" () : f32[" + rows +
                       ", 1024]\n%1 = activation (%0) {function=relu} : f32[" + rows +
                       ", 1024]\n%2 = activation (%1) {function=silu} : f32[" + rows +
                       ", 1024]\n%3 = output \"y\" (%2) : f32[" + rows + ", 1024]\n");
  };
  BOOST_TEST(steps_in_runs(bound(large("4096"), {})) == 1);  // 16 MiB: the last step writes for the caller
  BOOST_TEST(steps_in_runs(bound(large("4097"), {})) == 2);
}

BOOST_AUTO_TEST_CASE(scaled_weights_are_scaled_while_they_are_packed) {
  const Graph g = parse_graph(x + R"(
%1 = parameter "w" () : f32[32, 32]
%2 = scale (%1) {factor=-0.5} : f32[32, 32]
%3 = scale (%2) {factor=3} : f32[32, 32]
%4 = parameter "b.bias" () : f32[32]
%5 = scale (%4) {factor=7} : f32[32]
%6 = linear (%0, %3, %5) {has_bias=1, has_residual=0, function=none} : f32[n, 32]
%7 = linear (%6, %1) {has_bias=0, has_residual=0, function=none} : f32[n, 32]
%8 = add (%7, %5) : f32[n, 32]
%9 = output "y" (%8) : f32[n, 32]
%10 = output "w" (%3) : f32[32, 32]
)");
  const BoundModel m = bound(g, {{"n", 3}});
  BOOST_TEST(m.steps().size() == 4u);  // two projections, the sum, the weight's copy to the caller
  for (const std::int64_t n : {0, 1, 7}) check_results(g, {{"n", n}});
}

BOOST_AUTO_TEST_CASE(a_folded_scale_costs_nothing_in_a_run) {
  const Graph declared = parse_graph(x + R"(
%1 = parameter "w" () : f32[48, 32]
%2 = linear (%0, %1) {has_bias=0, has_residual=0, function=none} : f32[n, 48]
%3 = scale (%2) {factor=0.25} : f32[n, 48]
%4 = softmax (%3) : f32[n, 48]
%5 = output "y" (%4) : f32[n, 48]
)");
  const auto bytes = [](const BoundModel& m) {
    double sum = 0;
    for (const StepInfo& s : m.steps()) sum += s.bytes;
    return sum;
  };
  const BoundModel before = bound(declared, {{"n", 10}}), after = bound(optimise(declared), {{"n", 10}});
  BOOST_TEST(before.steps().size() == 3u);
  BOOST_TEST(after.steps().size() == 2u);
  BOOST_TEST(bytes(before) - bytes(after) == 2 * 4 * 10 * 48);  // read and written once less
  check_results(optimise(declared), {{"n", 10}});
}

BOOST_AUTO_TEST_CASE(elementwise_results_lie_over_their_operands) {
  const Graph g = parse_graph(x + R"(
%1 = activation (%0) {function=relu} : f32[n, 32]
%2 = activation (%1) {function=tanh} : f32[n, 32]
%3 = rms_norm (%2) {has_weight=0, eps=1e-06} : f32[n, 32]
%4 = softmax (%3) : f32[n, 32]
%5 = parameter "w" () : f32[32, 32]
%6 = linear (%0, %5, %4) {has_bias=0, has_residual=1, function=none} : f32[n, 32]
%7 = add (%6, %6) : f32[n, 32]
%8 = scale (%7) {factor=2} : f32[n, 32]
%9 = output "y" (%8) : f32[n, 32]
)");
  const BoundModel m = bound(g, {{"n", 16}});
  BOOST_TEST(m.arena_bytes() == 16u * 32u * 4u);
  BOOST_TEST(m.arena_bytes_without_reuse() == 2u * 16u * 32u * 4u);
  for (const std::int64_t n : {0, 1, 7, 16}) check_results(g, {{"n", n}});
}

BOOST_AUTO_TEST_CASE(operands_that_are_read_otherwise_are_not_overwritten) {
  const std::string y = "%1 = activation (%0) {function=tanh} : f32[n, 32]\n";
  const auto apart = [](const std::string& text, const Lengths& dims) {
    const Graph g = parse_graph(text);
    const BoundModel m = bound(g, dims);
    BOOST_TEST(m.arena_bytes() == m.arena_bytes_without_reuse());
    check_results(g, dims);
  };
  // Another view of the same memory; a projection's own input; a later reader; one row for all.
  apart(x + y +
            "%2 = transpose (%1) {perm=[1, 0]} : f32[32, n]\n%3 = add (%1, %2) : f32[32, 32]\n%4 = softmax (%0) : "
            "f32[n, 32]\n%5 = matmul (%3, %4) : f32[32, 32]\n%6 = output \"y\" (%5) : f32[32, 32]\n",
        {{"n", 32}});
  apart(x + y +
            "%2 = parameter \"w\" () : f32[32, 32]\n%3 = linear (%1, %2, %1) {has_bias=0, has_residual=1, "
            "function=none} : f32[n, 32]\n%4 = matmul (%0, %3) : f32[n, 32]\n%5 = output \"y\" (%4) : f32[n, 32]\n",
        {{"n", 32}});
  apart(x + y +
            "%2 = softmax (%1) : f32[n, 32]\n%3 = matmul (%1, %2) : f32[n, 32]\n%4 = output \"y\" (%3) : f32[n, 32]\n",
        {{"n", 32}});
}

BOOST_AUTO_TEST_CASE(models_need_less_memory) {
  for (const auto& entry : models::all) {
    const Graph g = optimise(entry.build());
    Lengths dims;
    const auto names = dim_names(g);
    for (const std::string& name : names) dims.push_back({name, name == "batch" ? 1 : 24});
    const BoundModel m = bound(g, dims);
    BOOST_TEST_CONTEXT(entry.name) BOOST_TEST(m.arena_bytes() <= m.arena_bytes_without_reuse());
    // A sixth and a fifth; in the others one layer's widest moment decides, where nothing dies.
    if (entry.name == "vit" || entry.name == "decoder_step")
      BOOST_TEST(m.arena_bytes() * 6 <= m.arena_bytes_without_reuse() * 5);
  }
}

BOOST_AUTO_TEST_CASE(heads_are_views) {
  // Splits, merges and transposes take no step and no copy; what copies is an append to a cache, and vit's class token.
  for (const auto& entry : models::all) {
    const Graph g = optimise(entry.build());
    Lengths dims;
    const auto names = dim_names(g);
    for (const std::string& name : names) dims.push_back({name, 17});
    const BoundModel m = bound(g, dims);
    for (const StepInfo& s : m.steps()) {
      BOOST_TEST_CONTEXT(entry.name << ": " << name(s.op)) {
        BOOST_TEST((s.op != op::split_heads && s.op != op::merge_heads && s.op != op::transpose && s.op != op::slice));
        if (s.kernel == "copy") BOOST_TEST((s.op == op::append || s.op == op::concatenate));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

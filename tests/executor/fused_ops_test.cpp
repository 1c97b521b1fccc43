// The planner's steps of fused nodes, on every ISA against float64.

#include "support.hpp"

#include <treadle/graph/text.hpp>

using namespace treadle;
using namespace treadle::test;

namespace {

void check(const std::string& text, const Lengths& dims) {
  const Graph g = parse_graph(text);
  const Parameters parameters = Parameters::random(g, 1, values_of(dims));
  const Results want = oracle(g, parameters, dims, 5);
  for (const std::string& isa : isas())
    for (const bool strided : {false, true}) BOOST_TEST_CONTEXT(isa << (strided ? " strided" : ""))
  BOOST_TEST(difference(run(g, parameters, dims, {.backend = "simd", .isa = isa}, 5, strided, strided), want) < 1e-5);
  BOOST_TEST(difference(run(g, parameters, dims, {.backend = "tbb", .threads = 2}, 5),
                        run(g, parameters, dims, {.backend = "simd"}, 5)) == 0.0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fused_ops)

BOOST_AUTO_TEST_CASE(add_norm) {
  for (const std::int64_t n : {0, 1, 7, 17})
    for (const char* norm :
         {"add_layer_norm (%2, %1, %3, %4) {has_weight=1, has_bias=1, eps=1e-05}",
          "add_rms_norm (%2, %1, %3) {has_weight=1, eps=1e-06}", "add_rms_norm (%2, %2) {has_weight=0, eps=1e-06}"})
      for (const char* rest : {"%6 = multiply (%5, %5#1) : f32[n, 20]\n%7 = output \"y\" (%6) : f32[n, 20]\n",
                               "%7 = output \"y\" (%5#1) : f32[n, 20]\n",
                               "%6 = output \"s\" (%5) : f32[n, 20]\n%7 = output \"y\" (%5#1) : f32[n, 20]\n"})
        check(std::string("%0 = input \"x\" () : f32[n, 20]\n%1 = input \"y\" () : f32[n, 20]\n"
                          "%2 = activation (%0) {function=tanh} : f32[n, 20]\n%3 = parameter \"g\" () : f32[20]\n"
                          "%4 = parameter \"b\" () : f32[20]\n%5 = ") +
                  norm + " : f32[n, 20], f32[n, 20]\n" + rest,
              {{"n", n}});
}

BOOST_AUTO_TEST_CASE(embedding_sum) {
  for (const std::int64_t n : {0, 1, 5})
    for (const char* added : {"%2 = sinusoidal_positions () {offset=1, length=n, base=10000} : f32[n, 20]\n",
                              "%2 = input \"rows\" () : f32[n, 20]\n", "%2 = input \"rows\" () : f32[batch, n, 20]\n"})
      for (const char* node :
           {"(%1, %0, %2) {normalise=0}", "(%1, %0, %2) {factor=3, normalise=2, has_weight=0, eps=1e-06}",
            "(%1, %0, %2, %3, %4) {normalise=1, has_weight=1, has_bias=1, eps=1e-05}"})
        check(std::string("%0 = input \"ids\" () : i32[batch, n]\n%1 = parameter \"table\" () : f32[9, 20]\n") + added +
                  "%3 = parameter \"g\" () : f32[20]\n%4 = parameter \"b\" () : f32[20]\n%5 = embedding_sum " + node +
                  " : f32[batch, n, 20]\n%6 = output \"y\" (%5) : f32[batch, n, 20]\n",
              {{"batch", 3}, {"n", n}});
}

BOOST_AUTO_TEST_CASE(gated_linear) {
  for (const std::int64_t n : {0, 1, 9})
    for (const char* node :
         {"(%0, %1, %2) {has_bias=0, function=gelu}", "(%0, %1, %5, %3, %4) {has_bias=1, function=none}"})
      check(std::string(
                "%0 = input \"x\" () : f32[2, n, 12]\n%1 = parameter \"g\" () : f32[20, 12]\n%2 = parameter \"u\" () "
                ": f32[20, 12]\n%3 = parameter \"gb\" () : f32[20]\n%4 = parameter \"ub\" () : f32[20]\n%5 = scale "
                "(%2) {factor=-2} : f32[20, 12]\n%6 = gated_linear ") +
                node + " : f32[2, n, 20]\n%7 = output \"y\" (%6) : f32[2, n, 20]\n",
            {{"n", n}});
}

BOOST_AUTO_TEST_CASE(weights_of_a_gated_linear_must_be_known_at_bind) {
  const Graph g = parse_graph(R"(%0 = input "x" () : f32[3, 4]
%1 = input "w" () : f32[5, 4]
%2 = gated_linear (%0, %1, %1) {has_bias=0, function=silu} : f32[3, 5]
%3 = output "y" (%2) : f32[3, 5]
)");
  const std::string message = error_of([&] { BoundModel m(g, {}, {.backend = "simd"}); });
  BOOST_TEST(
      message.find("a weight is computed in the run; gated_linear packs its weights at bind, so write two linear "
                   "nodes") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_form_of_linear_attention_follows_the_lengths) {
  const Graph g = parse_graph(R"(%0 = input "q" () : f32[1, 2, n, 16]
%1 = input "k" () : f32[1, 2, m, 16]
%2 = linear_attention (%0, %1, %1) {causal=0, eps=0.001, function=elu_plus_one, has_mask=0} : f32[1, 2, n, 16]
%3 = output "y" (%2) : f32[1, 2, n, 16]
)");
  BoundModel m(g, {}, {.backend = "simd"});
  const auto form = [&](std::int64_t queries, std::int64_t keys) {
    m.bind_dims({{"n", queries}, {"m", keys}});
    BOOST_TEST(m.describe().find(m.steps()[0].kernel) != std::string::npos);
    return m.steps()[0].kernel;
  };
  BOOST_TEST(form(4, 4) == "linear_attention_quadratic");
  BOOST_TEST(form(1, 1000) == "linear_attention_quadratic");  // one query: no state pays
  BOOST_TEST(form(200, 200) == "linear_attention_chunked");
  for (const std::int64_t n : {0, 1, 5, 60, 200})
    for (const std::int64_t keys : {1, 5, 60, 200}) {
      const Lengths dims{{"n", n}, {"m", keys}};
      BOOST_TEST(difference(run(g, {}, dims, {.backend = "simd"}, 5), oracle(g, {}, dims, 5)) < 1e-5);
    }
}

BOOST_AUTO_TEST_SUITE_END()

// States, errors, several models at once, and what a plan says about itself.

#include "support.hpp"

#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include <thread>

using namespace treadle;
using namespace treadle::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Logits of all tokens through decoder_step, in steps of the given sizes.
std::vector<double> decode(const Graph& g, const Parameters& parameters, const BindOptions& options,
                           const std::vector<std::int64_t>& steps) {
  BoundModel model(g, parameters, options);
  std::vector<double> logits;
  std::int64_t past = 0;
  for (const std::int64_t fresh : steps) {
    model.bind_dims({{"past", past}, {"fresh", fresh}});
    Tensor history(i32, {past}), tokens(i32, {1, fresh}), out(f32, {1, fresh, 53});
    std::memset(history.view.data, 0, static_cast<std::size_t>(past) * sizeof(std::int32_t));
    for (std::int64_t i = 0; i < fresh; ++i)
      tokens.view.as<std::int32_t>()[i] = static_cast<std::int32_t>((past + i) * 7 % 53);
    model.run({{"history", history.view}, {"tokens", tokens.view}}, {{"logits", out.view}});
    for (const double x : values(out)) logits.push_back(x);
    past += fresh;
  }
  return logits;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bound_model)

BOOST_AUTO_TEST_CASE(a_cache_in_steps_equals_the_whole) {
  const Graph g = optimise(models::decoder_step());
  const Parameters parameters = Parameters::random(g, 2);
  const auto whole = decode(g, parameters, {.backend = "reference", .float64 = true}, {12});
  for (const char* backend : {"reference", "simd", "tbb"}) {
    for (const auto& steps :
         std::vector<std::vector<std::int64_t>>{{12}, {5, 1, 1, 5}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      const auto got = decode(g, parameters, {.backend = backend}, steps);
      BOOST_TEST_CONTEXT(backend << " in " << steps.size() << " steps")
      BOOST_TEST(difference({{"logits", got}}, {{"logits", whole}}) < 1e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(states_are_seen_and_reset) {
  const Graph g = optimise(models::decoder_step());
  BoundModel model(g, Parameters::random(g, 2), {.backend = "simd"});
  model.bind_dims({{"past", 0}, {"fresh", 2}});
  Tensor history(i32, {0}), tokens(i32, {1, 2}), out(f32, {1, 2, 53});
  std::memset(tokens.view.data, 0, 8);
  const std::string message = error_of([&] { model.state("cache"); });
  BOOST_TEST(has(message, "has no state 'cache'"));
  const std::string name = message.substr(message.find("it has ") + 7,
                                          message.find(',', message.find("it has ")) - message.find("it has ") - 7);
  const TensorView state = model.state(name);
  BOOST_TEST(state.as<float>()[0] == 0.0f);
  model.run({{"history", history.view}, {"tokens", tokens.view}}, {{"logits", out.view}});
  BOOST_TEST(state.as<float>()[0] != 0.0f);
  model.reset_states();
  BOOST_TEST(state.as<float>()[0] == 0.0f);
}

BOOST_AUTO_TEST_CASE(several_models_run_at_once) {
  const Graph g = optimise(models::tiny_gpt());
  const Parameters parameters = Parameters::random(g, 4);
  const Lengths dims{{"batch", 2}, {"seq", 33}};
  const Results want = run(g, parameters, dims, {.backend = "simd"}, 1);
  std::vector<std::thread> threads;
  std::vector<double> worst(4, 1);
  for (std::size_t t = 0; t < worst.size(); ++t)
    threads.emplace_back([&, t] {
      BoundModel model(g, parameters, {.backend = t % 2 == 0 ? "simd" : "tbb", .threads = 2});
      model.bind_dims(dims);
      const Tensors in = inputs_of(g, dims, 1);
      Tensors out = outputs_of(g, dims);
      double most = 0;
      for (int i = 0; i < 10; ++i) {
        model.run(named(in), named(out));
        most = std::max(most, difference(values(out), want));
      }
      worst[t] = most;
    });
  for (std::thread& t : threads) t.join();
  for (const double w : worst) BOOST_TEST(w == 0.0);
}

BOOST_AUTO_TEST_CASE(a_result_may_lie_in_an_input) {
  Builder b;
  const Node x = b.input("x", f32, {4, 4});
  b.output("y", matmul(x, x));
  const Graph g = b.finish();
  BoundModel model(g, {}, {.backend = "simd"});  // no named dims: ready at once
  Tensor t(f32, {4, 4}), apart(f32, {4, 4});
  for (int i = 0; i < 16; ++i) t.view.as<float>()[i] = static_cast<float>(i);
  model.run({{"x", t.view}}, {{"y", apart.view}});
  model.run({{"x", t.view}}, {{"y", t.view}});
  BOOST_TEST(values(t) == values(apart));
}

BOOST_AUTO_TEST_CASE(outputs_may_be_left_out) {
  const Graph g = optimise(models::nested());
  BoundModel model(g, Parameters::random(g, 4), {.backend = "simd"});
  const Lengths dims{{"batch", 2}, {"seq", 5}};
  model.bind_dims(dims);
  const Tensors in = inputs_of(g, dims, 1);
  Tensor only(f32, {2, 2, 5, 24});
  model.run(named(in), std::vector<NamedTensor>{{"hidden", only.view}});
  BOOST_TEST(values(only) == run(g, Parameters::random(g, 4), dims, {.backend = "simd"}, 1)["hidden"]);
}

BOOST_AUTO_TEST_CASE(errors_name_what_is_wrong_and_what_is_right) {
  const Graph g = optimise(models::tiny_gpt());
  const Parameters parameters = Parameters::random(g, 4);
  const auto bind_error = [&](const Parameters& p, const BindOptions& o, const Lengths& dims) {
    return error_of([&] {
      BoundModel model(g, p, o);
      model.bind_dims(dims);
    });
  };
  const Lengths good{{"batch", 1}, {"seq", 8}};
  for (const char* backend : {"reference", "simd", "tbb"}) {
    BOOST_TEST_CONTEXT(backend) {
      const BindOptions o{.backend = backend};
      BOOST_TEST(bind_error(parameters, o, good) == "");
      BOOST_TEST(has(bind_error(parameters, o, {{"batch", 1}}), "dim 'seq' has no value"));
      BOOST_TEST(
          has(bind_error(parameters, o, {{"batch", 1}, {"sequence", 8}}), "no dim 'sequence'; it has batch, seq"));
      BOOST_TEST(has(bind_error(parameters, o, {{"batch", 1}, {"seq", -1}}), "dim 'seq' is -1"));
      BOOST_TEST(has(bind_error(parameters, o, {{"batch", std::int64_t{1} << 62}, {"seq", std::int64_t{1} << 62}}),
                     "too large"));
      BOOST_TEST(has(bind_error(parameters, o, {{"batch", std::int64_t{1} << 40}, {"seq", 200}}), "memory"));
      BOOST_TEST(has(bind_error({}, o, good), "is missing; the model wants f32 ["));
    }
  }
  BOOST_TEST(has(bind_error(parameters, {.backend = "simd"}, {{"batch", 1}, {"seq", 257}}),
                 "leave the table, which has 256 rows"));
  BOOST_TEST(
      has(bind_error(parameters, {.backend = "cuda"}, good), "no backend 'cuda'; there are reference, simd, tbb"));
  BOOST_TEST(has(bind_error(parameters, {.backend = "simd", .isa = "mmx"}, good), "ISA 'mmx' is unknown"));
  BOOST_TEST(has(bind_error(parameters, {.backend = "simd", .float64 = true}, good),
                 "float64 is there on backend 'reference'"));
  BOOST_TEST(has(bind_error(parameters, {.backend = "tbb", .threads = -2}, good), "-2 threads"));
  Parameters wrong = parameters;
  wrong.own("ln_f.weight", {3}, {1, 2, 3});
  BOOST_TEST(has(bind_error(wrong, {.backend = "simd"}, good), "parameter 'ln_f.weight' is [3]; the model wants [48]"));
}

BOOST_AUTO_TEST_CASE(a_run_checks_what_it_is_given) {
  const Graph g = optimise(models::tiny_gpt());
  for (const char* backend : {"reference", "simd"}) {
    BoundModel model(g, Parameters::random(g, 4), {.backend = backend});
    Tensor tokens(i32, {1, 8}), floats(f32, {1, 8}), longer(i32, {1, 9}), out(f32, {1, 8, 101}),
        small(f32, {1, 8, 100});
    std::memset(tokens.view.data, 0, 32);
    const auto run_error = [&](std::vector<NamedTensor> in, std::vector<NamedTensor> to) {
      return error_of([&] { model.run(in, to); });
    };
    BOOST_TEST(has(run_error({{"tokens", tokens.view}}, {{"logits", out.view}}), "call bind_dims first"));
    model.bind_dims({{"batch", 1}, {"seq", 8}});
    BOOST_TEST(run_error({{"tokens", tokens.view}}, {{"logits", out.view}}) == "");
    BOOST_TEST(has(run_error({}, {{"logits", out.view}}), "input 'tokens' is missing; the model wants i32 [1, 8]"));
    BOOST_TEST(has(run_error({{"ids", tokens.view}}, {}), "no input 'ids'; it has tokens"));
    BOOST_TEST(has(run_error({{"tokens", floats.view}}, {}), "'tokens' is f32; the model wants i32"));
    BOOST_TEST(has(run_error({{"tokens", longer.view}}, {}), "has shape [1, 9]; the model wants [1, 8]"));
    BOOST_TEST(
        has(run_error({{"tokens", tokens.view}}, {{"logits", small.view}}), "output 'logits' has shape [1, 8, 100]"));
    BOOST_TEST(has(run_error({{"tokens", tokens.view}, {"tokens", tokens.view}}, {}), "given twice"));
    tokens.view.as<std::int32_t>()[3] = 101;
    BOOST_TEST(has(run_error({{"tokens", tokens.view}}, {{"logits", out.view}}), "table"));
  }
}

BOOST_AUTO_TEST_CASE(an_op_without_a_kernel_is_named) {
  Builder b;
  const Node x = b.input("x", i32, {4});
  b.output("y", x + x);
  const Graph g = b.finish();
  BOOST_TEST(has(error_of([&] { BoundModel model(g, {}, {.backend = "simd"}); }), "add"));
}

BOOST_AUTO_TEST_CASE(steps_say_where_and_how_much) {
  const Graph g = optimise(models::longformer_like());
  BoundModel model(g, Parameters::random(g, 4), {.backend = "simd"});
  model.bind_dims({{"batch", 1}, {"seq", 512}});
  bool found = false;
  for (const StepInfo& s : model.steps()) {
    BOOST_TEST(s.backend == "simd");
    if (s.op != op::attention) continue;
    found = true;
    // 2 heads; every row sees about 17 keys and 2 global ones.
    BOOST_TEST(s.useful_flops > 2 * 512 * 17 * 64.0);
    BOOST_TEST(s.useful_flops < 0.2 * s.executed_flops + 0.2 * 2 * 512 * 512 * 64.0);
    BOOST_TEST(s.executed_flops < 0.5 * 2 * 512 * 512 * 64.0);
  }
  BOOST_TEST(found);
  BOOST_TEST(has(model.describe(), "attention"));
  BOOST_TEST(has(model.describe(), "simd"));
}

BOOST_AUTO_TEST_SUITE_END()

// The linear Transformer and Performer: static models, and a state of constant size that gives what the whole sequence
// gives.

#include "static_models.hpp"

#include <treadle/models/generation.hpp>
#include <treadle/models/linear_transformer.hpp>

namespace treadle::test {

namespace {

constexpr models::LinearTransformerConfig golden_sizes{
    .vocabulary = 70, .width = 32, .layers = 2, .heads = 4, .hidden = 64, .positions = 80};
struct GoldenLinear : Model<[] { return models::linear_transformer_lm(golden_sizes); }> {};
struct GoldenPerformer : Model<[] {
  models::LinearTransformerConfig c = golden_sizes;
  c.features = 20;
  return models::linear_transformer_lm(c);
}> {};

/// The tokens [first, first + count) of each text, and where they stand.
struct Part {
  io::Tensor ids, positions;

  Part(const io::Tensor& text, std::int64_t first, std::int64_t count)
      : ids(i32, {text.shape[0], count}), positions(i32, {text.shape[0], count}) {
    const io::Tensor all = io::convert(text, i32);
    for (std::int64_t b = 0; b < text.shape[0]; ++b)
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(b * count + i);
        ids.as<std::int32_t>()[at] = all.as<std::int32_t>()[static_cast<std::size_t>(b * text.shape[1] + first + i)];
        positions.as<std::int32_t>()[at] = static_cast<std::int32_t>(first + i);
      }
  }
};

struct Results {
  io::Tensor hidden, logits;  ///< logits of each text's last token
};

Results results_of(BoundModel& model, Part part) {
  const std::int64_t texts = part.ids.shape[0], count = part.ids.shape[1];
  model.bind_dims({{"batch", texts}, {"seq", count}});
  Results r{io::Tensor(f32, {texts, count, 32}), io::Tensor(f32, {texts, 1, 70})};
  io::Tensor last(i32, {texts, 1});
  for (std::int32_t& i : last.as<std::int32_t>()) i = static_cast<std::int32_t>(count - 1);
  model.run({{"input_ids", part.ids.view()}, {"position_ids", part.positions.view()}, {"last_token", last.view()}},
            {{"hidden", r.hidden.view()}, {"logits", r.logits.view()}});
  return r;
}

/// The rows [first, first + count) of every text.
io::Tensor rows_of(const io::Tensor& tensor, std::int64_t first, std::int64_t count) {
  const io::Tensor all = io::convert(tensor, f32);
  io::Tensor r(f32, {all.shape[0], count, all.shape[2]});
  for (std::int64_t b = 0; b < all.shape[0]; ++b)
    std::copy_n(all.as<float>().begin() + (b * all.shape[1] + first) * all.shape[2], count * all.shape[2],
                r.as<float>().begin() + b * count * all.shape[2]);
  return r;
}

constexpr std::int64_t part_lengths[] = {4, 1, 1, 50, 1, 4};

/// Parts, one after the other, against the whole.
void parts_give(BoundModel& model, const io::Tensor& text, const Results& whole) {
  std::int64_t past = 0;
  for (const std::int64_t count : part_lengths) {
    const Results r = results_of(model, Part(text, past, count));
    BOOST_TEST_CONTEXT("after " << past << " tokens") {
      BOOST_TEST(tolerances_apart(r.hidden, rows_of(whole.hidden, past, count)) < 1);
      BOOST_TEST(tolerances_apart(r.logits, rows_of(whole.logits, past + count - 1, 1)) < 1);
    }
    past += count;
  }
  BOOST_TEST(past == text.shape[1]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_transformers)

BOOST_AUTO_TEST_CASE(static_models_give_the_same_bits) {
  static_gives_the_same_bits<GoldenLinear>("linear_transformer");
  static_gives_the_same_bits<GoldenPerformer>("performer");
}

BOOST_AUTO_TEST_CASE(a_state_gives_what_the_whole_sequence_gives) {
  for (const std::string name : {"linear_transformer", "performer"}) {
    const io::Tensor text = io::load_npy(golden(name) / "input_ids.npy");
    const Tensors expected = expected_of(golden(name));
    const Results whole{expected.at("hidden"), expected.at("logits")};
    const models::LoadedModel loaded = models::load_checkpoint(golden(name), {.cache = true});
    for (const char* backend : {"reference", "simd", "tbb"}) BOOST_TEST_CONTEXT(name << " on " << backend) {
        BoundModel model = loaded.bind({.backend = backend});
        parts_give(model, text, whole);
        // Layers, texts, heads, features, and a head's values with the denominator and, for Performer, the exponents.
        const TensorView state = model.state("layers.attention.state");
        const std::vector<std::int64_t> shape(state.shape.begin(), state.shape.begin() + state.rank);
        const bool linear = name == "linear_transformer";
        BOOST_TEST((shape == std::vector<std::int64_t>{2, 2, 4, linear ? 8 : 20, linear ? 9 : 10}));
        model.reset_states();
        parts_give(model, text, whole);
      }
  }
}

BOOST_AUTO_TEST_CASE(other_options_too) {
  // Pre-norm, sinusoidal positions, a tied last matrix; weights of no meaning.
  models::LinearTransformerConfig c = golden_sizes;
  c.sinusoidal = c.norm_first = c.tied = true;
  const io::Tensor text = io::load_npy(golden("performer") / "input_ids.npy");
  for (const std::int64_t features : {0, 12}) {
    c.features = features;
    c.state = false;
    const Graph all = models::linear_transformer_lm(c);
    c.state = true;
    const Graph parts = models::linear_transformer_lm(c);
    Parameters parameters;
    std::uint32_t number = 1;
    for (const ParameterInfo& p : parameter_names(all.view())) {
      io::Tensor values(f32, p.shape);
      for (float& x : values.as<float>()) {
        number = number * 1664525U + 1013904223U;
        x = static_cast<float>(number >> 8) / 16777216.0F - 0.5F;
      }
      parameters.own(p.name, p.shape, {values.as<float>().begin(), values.as<float>().end()});
    }
    BoundModel whole(all.view(), parameters, {.backend = "simd"}), steps(parts.view(), parameters, {.backend = "simd"});
    whole.bind_dims({{"batch", 2}, {"seq", 61}});
    io::Tensor ids = io::convert(text, i32);
    Results r{io::Tensor(f32, {2, 61, 32}), io::Tensor(f32, {2, 61, 70})};
    whole.run({{"input_ids", ids.view()}}, {{"hidden", r.hidden.view()}, {"logits", r.logits.view()}});
    BOOST_TEST_CONTEXT(features << " features") { parts_give(steps, text, r); }
  }
}

BOOST_AUTO_TEST_CASE(generation) {
  // Greedy tokens are those that the whole text, read again each time, asks for.
  for (const std::string name : {"linear_transformer", "performer"}) {
    const models::LoadedModel cached = models::load_checkpoint(golden(name), {.cache = true});
    models::Generator generator(cached, {.backend = "simd"}, 3);
    std::vector<std::vector<std::int32_t>> texts = {{5, 9, 69, 3, 12}, {1, 1, 40, 2, 8}};
    const models::Generation g = generator.generate(texts, {.max_new_tokens = 6});
    for (std::size_t t = 0; t < texts.size(); ++t)
      for (const std::int32_t token : g.sequences[t].tokens) {
        const auto length = static_cast<std::int64_t>(texts[t].size());
        const io::Tensor logits = run(golden(name), {{"input_ids", ids_of({1, length}, texts[t])}}).at("logits");
        const auto row = logits.as<float>().subspan(static_cast<std::size_t>(length - 1) * 70);
        BOOST_TEST_CONTEXT(name << ", text " << t << " of " << length << " tokens") {
          BOOST_TEST(token == std::max_element(row.begin(), row.end()) - row.begin());
        }
        texts[t].push_back(token);
      }
    BOOST_TEST(texts[0].size() == 11U);
    // Two texts, two layers, four heads, whatever the lengths.
    BOOST_TEST(generator.cache_bytes() == sizeof(float) * 2 * 2 * 4 * (name == "performer" ? 20 * 10 : 8 * 9));
  }
}

BOOST_AUTO_TEST_CASE(hidden_states_of_every_layer) {
  const models::LoadedModel loaded = models::load_checkpoint(golden("performer"), {.every_layer = true});
  BoundModel model = loaded.bind({.backend = "simd"});
  const Tensors results = models::run_model(model, loaded, inputs_of(golden("performer")));
  BOOST_TEST((results.at("layers").shape == std::vector<std::int64_t>{2, 2, 61, 32}));
  BOOST_TEST(tolerances_apart(results.at("hidden"), expected_of(golden("performer")).at("hidden")) < 1);
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  const ChangedConfig positions("performer", "\"hidden_act\"",
                                "\"position_embedding_type\": \"rotary\", \"hidden_act\"");
  BOOST_TEST(refuses(positions.path(), "position_embedding_type is \"rotary\"; only \"learned\" or \"sinusoidal\""));
  const ChangedConfig features("performer", "\"num_features\": 20", "\"num_features\": 0");
  BOOST_TEST(refuses(features.path(), "num_features is 0; a whole number of 1 or more is needed"));
  BOOST_TEST(refuses(golden("performer"), "model_type is \"performer\"; no variant takes the place of its attention",
                     {.attention = causal}));
  const ChangedConfig map("linear_transformer", "\"hidden_act\"", "\"feature_map\": \"relu\", \"hidden_act\"");
  BOOST_TEST(refuses(map.path(), "feature_map is \"relu\"; only \"elu_plus_one\" is supported"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test

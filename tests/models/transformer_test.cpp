// The Transformer of 2017: its sizes, its decoder token by token, and checkpoints that say less than they hold.

#include "support.hpp"

#include <treadle/models/bahdanau.hpp>
#include <treadle/models/generation.hpp>

#include <algorithm>
#include <string_view>

namespace treadle::test {

namespace {

/// Distance of the rows [first, first + count) of the first batch element from those of `whole` from `from` on.
float distance(const io::Tensor& part, std::int64_t first, std::int64_t count, const io::Tensor& whole,
               std::int64_t from) {
  const std::int64_t width = part.shape[2];
  float largest = 0;
  for (std::int64_t i = 0; i < count * width; ++i)
    largest = std::max(largest, std::abs(part.as<float>()[static_cast<std::size_t>(first * width + i)] -
                                         whole.as<float>()[static_cast<std::size_t>(from * width + i)]));
  return largest;
}

io::Tensor row_of(const std::vector<std::int32_t>& values) {
  io::Tensor t(i32, {1, static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.as<std::int32_t>().begin());
  return t;
}

std::int64_t parameters_of(const Graph& g) {
  std::int64_t count = 0;
  for (const ParameterInfo& p : parameter_names(g.view())) {
    std::int64_t size = 1;
    for (const std::int64_t d : p.shape) size *= d;
    count += size;
  }
  return count;
}

/// The most probable tokens behind `tokens`, the whole sequence read again for each; `text`: that of the encoder.
std::vector<std::int32_t> greedy(const models::LoadedModel& loaded, const std::vector<std::int32_t>& text,
                                 std::vector<std::int32_t> tokens, int more) {
  BoundModel model = loaded.bind({.backend = "simd"});
  std::vector<std::int32_t> found;
  for (int i = 0; i < more; ++i) {
    Tensors inputs = {{text.empty() ? "input_ids" : "decoder_input_ids", row_of(tokens)}};
    if (!text.empty()) inputs.emplace("input_ids", row_of(text));
    const io::Tensor logits = models::run_model(model, loaded, inputs).at("logits");
    const auto last = logits.as<float>().last(static_cast<std::size_t>(logits.shape[2]));
    found.push_back(static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
    tokens.push_back(found.back());
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(the_transformer)

BOOST_AUTO_TEST_CASE(the_base_model_has_the_size_of_the_paper) {
  // Six layers of 3,152,384 and six of 4,204,032 parameters, and 37,000 words: table 3 rounds it to 65 million.
  BOOST_TEST(parameters_of(models::transformer({})) == 63'082'496);
  // Tables and a head of its own; halves alone.
  BOOST_TEST(parameters_of(models::transformer({.target_vocabulary = 1000, .tied = false, .head_bias = true})) ==
             63'082'496 + 2 * 512 * 1000 + 1000);
  BOOST_TEST(parameters_of(models::transformer({.decoder_layers = 0})) == 6 * 3'152'384 + 37000 * 512);
  BOOST_TEST(parameters_of(models::transformer({.encoder_layers = 0, .learned = true, .positions = 10})) ==
             6 * 3'152'384 + 37010 * 512);
  // Bahdanau's alignment model: W, U, C and v in each layer, and its norm.
  BOOST_TEST(parameters_of(models::bahdanau({})) == 6 * (3'152'384 + 1024 + 3 * 512 * 512 + 512) + 37000 * 512);
}

BOOST_AUTO_TEST_CASE(generation_with_a_cache) {
  const std::vector<std::vector<std::int32_t>> texts = {{5, 9, 46, 3, 3, 41, 0}, {7, 30, 12}};
  for (const char* name : {"transformer", "transformer_pre_norm", "transformer_decoder", "marian"}) {
    const models::LoadedModel whole = models::load_checkpoint(golden(name)),
                              steps = models::load_checkpoint(golden(name), {.cache = true});
    const bool alone = std::string_view(name) == "transformer_decoder";
    models::Generator generator(steps, {.backend = "simd"}, 2);
    const models::Generation g = generator.generate(texts, {.max_new_tokens = 6});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::vector<std::int32_t> want = alone ? greedy(whole, {}, texts[i], 6) : greedy(whole, texts[i], {0}, 6);
      BOOST_TEST(g.sequences[i].tokens == want, name << ", text " << i);
    }
  }
}

BOOST_AUTO_TEST_CASE(padding_before_a_text_changes_nothing) {
  const io::Tensor alone = run(golden("transformer_decoder"), {{"input_ids", row_of({5, 9, 66})}}).at("logits");
  const io::Tensor padded = run(golden("transformer_decoder"), {{"input_ids", row_of({1, 1, 5, 9, 66})},
                                                                {"attention_mask", row_of({0, 0, 1, 1, 1})},
                                                                {"position_ids", row_of({0, 0, 0, 1, 2})}})
                                .at("logits");
  BOOST_TEST(distance(padded, 2, 3, alone, 0) < 2e-5);
}

BOOST_AUTO_TEST_CASE(a_matrix_of_its_own_beside_a_configuration_that_ties) {
  // T5 1.1 as version 5 of the Transformers library saves it again.
  Folder f;
  std::string config = read(golden("t5_gated") / "config.json");
  const std::string from = "\"tie_word_embeddings\": false";
  config.replace(config.find(from), from.size(), "\"tie_word_embeddings\": true, \"scale_decoder_outputs\": false");
  f.write("config.json", config);
  std::filesystem::copy_file(golden("t5_gated") / "model.safetensors", f.path / "model.safetensors");
  const Tensors inputs = inputs_of(golden("t5_gated"));
  BOOST_TEST((run(f.path, inputs).at("logits").data == run(golden("t5_gated"), inputs).at("logits").data));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test

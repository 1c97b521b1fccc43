// BigBird and Funnel-Transformer beside their golden results: static models, the lengths at which BigBird changes its
// attention, and what is refused.

#include "static_models.hpp"

#include <treadle/models/bigbird.hpp>
#include <treadle/models/hierarchical.hpp>

namespace treadle::test {

namespace {

struct GoldenBigBird : Model<[] {
  return models::big_bird_model({.base = {.vocabulary = 90,
                                          .width = 32,
                                          .layers = 2,
                                          .heads = 4,
                                          .hidden = 48,
                                          .positions = 96,
                                          .function = gelu_tanh,
                                          .pooler = true,
                                          .masked_language = true,
                                          .next_sentence = true},
                                 .block = 8,
                                 .random = 2});
}> {};
struct GoldenFunnel : Model<[] {
  return models::funnel({.vocabulary = 80,
                         .width = 24,
                         .heads = 3,
                         .head_dim = 8,
                         .hidden = 40,
                         .blocks = {2, 1, 2},
                         .decoder_layers = 1,
                         .masked_language = true});
}> {};

/// `length` tokens that repeat slowly.
Tensors text(std::int64_t length) {
  io::Tensor t(i32, {1, length});
  for (std::int64_t i = 0; i < length; ++i)
    t.as<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(1 + i * i % 79);
  return {{"input_ids", std::move(t)}};
}

std::string message_of_run(const char* name, const Tensors& inputs) {
  try {
    run(golden(name), inputs);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sparse_and_pooled)

BOOST_AUTO_TEST_CASE(big_bird_gives_the_same_bits) { static_gives_the_same_bits<GoldenBigBird>("bigbird"); }

BOOST_AUTO_TEST_CASE(funnel_gives_the_same_bits) { static_gives_the_same_bits<GoldenFunnel>("funnel"); }

BOOST_AUTO_TEST_CASE(short_sequences_are_dense) {
  // Blocks of 8, two random ones: dense up to (5 + 2·2)·8 tokens.
  const ChangedConfig dense("bigbird", "block_sparse", "original_full");
  const auto apart = [&](std::int64_t length) {
    return tolerances_apart(run(golden("bigbird"), text(length)).at("hidden"),
                            run(dense.path(), text(length)).at("hidden"));
  };
  BOOST_TEST(apart(72) < 1);
  BOOST_TEST(apart(73) > 100);
  BOOST_TEST(apart(1) < 1);
}

BOOST_AUTO_TEST_CASE(a_variant_in_the_place_of_blocks) {
  // The same mask as a variant, where nothing counts more than once.
  const ChangedConfig none("bigbird", "\"num_random_blocks\": 2", "\"num_random_blocks\": 0");
  const Tensors inputs = text(61);
  const Tensors blocks = run(none.path(), inputs);
  const models::LoadedModel loaded =
      models::load_checkpoint(none.path(), {.attention = big_bird({.block = 8, .window = 3, .first = 1, .last = 1})});
  BoundModel model = loaded.bind({.backend = "simd"});
  BOOST_TEST(tolerances_apart(models::run_model(model, loaded, inputs).at("hidden"), blocks.at("hidden")) < 1);
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  const ChangedConfig kind("bigbird", "block_sparse", "etc");
  BOOST_TEST(
      refuses(kind.path(), "attention_type is \"etc\"; only \"block_sparse\" or \"original_full\" is supported"));
  BOOST_TEST(
      refuses(golden("bigbird_full"), "random_blocks are for block_sparse", {.given_inputs = {"random_blocks"}}));
  const ChangedConfig decoder("bigbird", "\"is_decoder\": false", "\"is_decoder\": true");
  BOOST_TEST(refuses(decoder.path(), "is_decoder is true; only false is supported"));
  const ChangedConfig twice("funnel", "\"block_repeats\": [\n  1,\n  1,", "\"block_repeats\": [\n  1,\n  2,");
  BOOST_TEST(refuses(twice.path(), "every layer is used once"));
  const ChangedConfig whole("funnel", "\"truncate_seq\": true", "\"truncate_seq\": false");
  BOOST_TEST(refuses(whole.path(), "truncate_seq is false; only true is supported"));
  BOOST_TEST(refuses(golden("funnel"), "no variant takes the place of its attention", {.attention = causal}));
  BOOST_TEST(message_of_run("funnel", text(5)) == "no error");
  BOOST_TEST(message_of_run("funnel", text(4)) == "'seq' is 4; funnel needs at least 5");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test

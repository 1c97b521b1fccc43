// What a checkpoint or its inputs may have wrong, and the sentence for it.

#include "support.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/models/names.hpp>

namespace treadle::test {

namespace {

/// The message of the Error that f throws.
template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The golden BERT with one text of its config.json replaced by another.
std::string message_of_config(const std::string& from, const std::string& to, const char* model = "bert") {
  Folder f;
  std::string config = read(golden(model) / "config.json");
  const std::size_t at = config.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  config.replace(at, from.size(), to);
  f.write("config.json", config);
  std::filesystem::copy_file(golden(model) / "model.safetensors", f.path / "model.safetensors");
  return message([&] { models::load_checkpoint(f.path); });
}

io::Tensor ids(std::vector<std::int64_t> shape, std::int32_t value) {
  io::Tensor t(i32, std::move(shape));
  for (std::int32_t& x : t.as<std::int32_t>()) x = value;
  return t;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(refusals)

BOOST_AUTO_TEST_CASE(patterns) {
  BOOST_TEST(models::matches("a.b.c", "a.*.c"));
  BOOST_TEST(models::matches("a..c", "a.*.c"));
  BOOST_TEST(!models::matches("a.b.d", "a.*.c"));
  BOOST_TEST(!models::matches("a", "a.*"));
  BOOST_TEST(models::matches("x.attn.bias", "*.attn.bias"));
  const std::vector<models::NameRule> rules = {{"h.*.q.*", "layer.*.query.*", true, 1, 3}, {"h.*", "other.*"}};
  const models::Published a = models::published_name("h.12.q.weight", rules);
  BOOST_TEST(a.name == "layer.12.query.weight");
  BOOST_TEST(a.transposed);
  BOOST_TEST(a.part == 1);
  BOOST_TEST(models::published_name("h.3.k", rules).name == "other.3.k");
  BOOST_TEST(models::published_name("wte", rules).name == "wte");
}

BOOST_AUTO_TEST_CASE(folders_and_configurations) {
  BOOST_TEST(contains(message([] { models::load_checkpoint("/nowhere"); }), "is no folder; a checkpoint is a folder"));
  Folder empty;
  BOOST_TEST(contains(message([&] { models::load_checkpoint(empty.path); }), "config.json: no such file"));
  BOOST_TEST(
      contains(message_of_config("\"bert\"", "\"mamba\""), "model_type is \"mamba\"; the model types are bert,"));
  BOOST_TEST(contains(message_of_config("\"model_type\": \"bert\",", ""), "model_type is missing"));
  BOOST_TEST(contains(message_of_config("\"is_decoder\": false", "\"is_decoder\": true"),
                      "is_decoder is true; only false is supported"));
  BOOST_TEST(contains(message_of_config("\"gelu\"", "\"mish\""), "hidden_act is \"mish\"; the functions are gelu"));
  BOOST_TEST(contains(message_of_config("\"hidden_size\": 48", "\"hidden_size\": 0"),
                      "hidden_size is 0; a whole number of 1 or more is needed"));
  BOOST_TEST(contains(message_of_config("\"hidden_size\": 48", "\"hidden_size\": \"48\""), "hidden_size is \"48\";"));
  BOOST_TEST(contains(message_of_config("\"num_attention_heads\": 4", "\"num_attention_heads\": 5"), "5 heads"));
  BOOST_TEST(contains(message_of_config("\"rope_scaling\": null", "\"rope_scaling\": {\"type\": \"own\"}", "llama"),
                      "rope_scaling: type is \"own\"; default, linear, dynamic, yarn and llama3 are supported"));
  BOOST_TEST(contains(message_of_config("\"patch_size\": 8", "\"patch_size\": 7", "vit"),
                      "patch_size is 7; it must divide image_size 32"));
  BOOST_TEST(contains(message_of_config("\"sinusoidal\"", "\"rotary\"", "transformer"),
                      "position_embedding is \"rotary\"; only \"sinusoidal\" or \"learned\" is supported"));
  BOOST_TEST(
      contains(message_of_config("\"num_encoder_layers\": 2", "\"num_encoder_layers\": 0", "transformer_encoder"),
               "num_decoder_layers is 0; an encoder or a decoder has at least one layer"));
  BOOST_TEST(contains(message_of_config("\"num_encoder_layers\": 0", "\"num_encoder_layers\": 1", "bahdanau"),
                      "num_encoder_layers is 1; only 0 is supported"));
  BOOST_TEST(contains(message_of_config("\"decoder_vocab_size\": 90", "\"decoder_vocab_size\": 91", "marian"),
                      "decoder_vocab_size is 91; only 90 is supported"));
  BOOST_TEST(contains(message_of_config("\"max_window_layers\": 1", "\"max_window_layers\": 2", "qwen2"),
                      "with the other options it can only be [\"full_attention\",\"full_attention\",\"sliding_"));
}

BOOST_AUTO_TEST_CASE(all_that_does_not_fit_at_once) {
  const std::string wrong = message_of_config("\"intermediate_size\": 96", "\"intermediate_size\": 80");
  BOOST_TEST(contains(wrong, "'bert.encoder.layer.0.intermediate.dense.weight' is [96, 48] instead of [80, 48]"));
  BOOST_TEST(contains(wrong, "'bert.encoder.layer.1.output.dense.weight' is [48, 96] instead of [48, 80]"));
  const std::string fewer = message_of_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  BOOST_TEST(contains(fewer, "'bert.encoder.layer.1.attention.self.key.bias' is unexpected"));
  const std::string more = message_of_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  BOOST_TEST(contains(more, "'encoder.layer.2.attention.self.query.weight' [48, 48] is missing"));

  // A tensor that holds queries, keys and values is told once, with its own shape.
  const std::string fused = message_of_config("\"num_decoder_layers\": 2", "\"num_decoder_layers\": 3", "transformer");
  const std::string third = "'decoder.layers.2.multihead_attn.in_proj_weight' [96, 32] is missing";
  BOOST_TEST(contains(fused, third));
  BOOST_TEST(fused.find(third) == fused.rfind(third));

  Folder f;
  std::filesystem::copy_file(golden("gpt2") / "config.json", f.path / "config.json");
  std::string file = read(golden("gpt2") / "model.safetensors");
  const std::string name = "transformer.ln_f.weight";
  file.replace(file.find(name), name.size(), "transformer.ln_g.weight");
  f.write("model.safetensors", file);
  const std::string near = message([&] { models::load_checkpoint(f.path); });
  BOOST_TEST(contains(near, "'ln_f.weight' [48] is missing"));
  BOOST_TEST(contains(near, "'transformer.ln_g.weight' is unexpected"));
  // Other checkpoints: BERT's tensors under GPT-2's configuration.
  std::filesystem::copy_file(golden("bert") / "model.safetensors", f.path / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  BOOST_TEST(contains(message([&] { models::load_checkpoint(f.path); }), "does not fit its config.json"));
}

BOOST_AUTO_TEST_CASE(what_a_run_is_given) {
  const auto of_bert = [](const Tensors& inputs) { return message([&] { run(golden("bert"), inputs); }); };
  BOOST_TEST(of_bert({{"input_ids", ids({1, 64}, 119)}}) == "no error");
  BOOST_TEST(contains(of_bert({{"input_ids", ids({1, 65}, 1)}}), "64"));
  BOOST_TEST(contains(of_bert({{"input_ids", ids({1, 4}, 120)}}), "the input 'input_ids' holds 120; ids are 0 to 119"));
  BOOST_TEST(contains(of_bert({{"input_ids", ids({1, 4}, -1)}}), "'input_ids' holds -1; ids are 0"));
  BOOST_TEST(of_bert({}) == "the input 'input_ids' is missing");
  BOOST_TEST(contains(of_bert({{"input_ids", ids({1, 4}, 1)}, {"tokens", ids({1, 4}, 1)}}),
                      "the model has no input 'tokens'; its inputs are "));
  BOOST_TEST(contains(of_bert({{"input_ids", ids({2, 4}, 1)}, {"attention_mask", ids({2, 3}, 1)}}), "'seq' is "));
  BOOST_TEST(contains(of_bert({{"input_ids", ids({4}, 1)}}), "the input 'input_ids' is [4]; it has 2 dims"));
  io::Tensor numbers(f32, {1, 4});
  BOOST_TEST(contains(of_bert({{"input_ids", numbers}}), "the input 'input_ids' is f32; it holds whole numbers"));
  io::Tensor large(i64, {1, 1});
  large.as<std::int64_t>()[0] = std::int64_t{1} << 40;
  BOOST_TEST(contains(of_bert({{"input_ids", large}}), "does not fit i32"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test

// CLIP and DETR beside their golden results: static models, both conventions of CLIP's end of text, both sets of names
// of DETR's parameters.

#include "static_models.hpp"

#include <treadle/models/clip.hpp>
#include <treadle/models/detr.hpp>

namespace treadle::test {

namespace {

struct GoldenClip : Model<[] {
  return models::clip({.vocabulary = 99,
                       .positions = 20,
                       .image = 24,
                       .patch = 8,
                       .projection = 24,
                       .text = {.width = 32, .layers = 2, .heads = 4, .hidden = 64},
                       .vision = {.width = 40, .layers = 2, .heads = 5, .hidden = 64},
                       .end = 98});
}> {};
struct GoldenDetr : Model<[] {
  return models::detr({.width = 32,
                       .queries = 7,
                       .encoder_layers = 2,
                       .decoder_layers = 2,
                       .encoder_heads = 4,
                       .decoder_heads = 4,
                       .encoder_hidden = 48,
                       .decoder_hidden = 48,
                       .classes = 5});
}> {};

/// The texts' vectors of the golden CLIP with another end of text.
io::Tensor text_vectors(const std::string& end, std::int64_t length, const std::vector<std::int32_t>& ids) {
  const ChangedConfig changed("clip", "\"eos_token_id\": 98", "\"eos_token_id\": " + end);
  return run(changed.path(), {{"input_ids", ids_of({1, length}, ids)},
                              {"pixel_values", io::load_npy(golden("clip") / "pixel_values.npy")}})
      .at("text_embeds");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(vision)

BOOST_AUTO_TEST_CASE(static_models_give_the_same_bits) {
  static_gives_the_same_bits<GoldenClip>("clip");
  static_gives_the_same_bits<GoldenDetr>("detr");
}

BOOST_AUTO_TEST_CASE(text_ends_at_its_end) {
  // 98 is the largest id of each golden text: the older convention, eos_token_id 2, finds the same places.
  const Tensors inputs = inputs_of(golden("clip"));
  const ChangedConfig older("clip", "\"eos_token_id\": 98", "\"eos_token_id\": 2");
  const Tensors a = run(golden("clip"), inputs), b = run(older.path(), inputs);
  for (const auto& [name, tensor] : a) BOOST_TEST((tensor.data == b.at(name).data), name);
  // Attention is causal, so what stands behind the end does not count, and the first of several ends does.
  const io::Tensor cut = text_vectors("5", 3, {97, 7, 5});
  BOOST_TEST(tolerances_apart(text_vectors("5", 6, {97, 7, 5, 98, 5, 2}), cut) < 1);
  BOOST_TEST(tolerances_apart(text_vectors("2", 6, {9, 7, 50, 8, 50, 2}), text_vectors("2", 3, {9, 7, 50})) < 1);
  BOOST_TEST(tolerances_apart(text_vectors("2", 6, {97, 7, 5, 98, 5, 2}), cut) > 10);
}

BOOST_AUTO_TEST_CASE(names_of_files_and_of_modules) {
  // self_attn.out_proj and fc1 in published files, self_attn.o_proj and mlp.fc1 in the library's modules.
  Folder renamed;
  std::filesystem::copy_file(golden("detr") / "config.json", renamed.path / "config.json");
  std::vector<RawTensor> tensors;
  const io::Safetensors from = io::Safetensors::open(golden("detr"));
  for (const io::StoredTensor& t : from.tensors()) {
    std::string name = t.name;
    for (const auto& [old, now] : {std::pair{".out_proj.", ".o_proj."}, {".fc1.", ".mlp.fc1."}, {".fc2.", ".mlp.fc2."}})
      if (const std::size_t at = name.find(old); at != std::string::npos)
        name.replace(at, std::string(old).size(), now);
    tensors.push_back({name, "F32", t.shape, {t.bytes.begin(), t.bytes.end()}});
  }
  write_safetensors(renamed.path / "model.safetensors", tensors);
  const Tensors inputs = inputs_of(golden("detr"));
  const Tensors a = run(golden("detr"), inputs), b = run(renamed.path, inputs);
  for (const auto& [name, tensor] : a) BOOST_TEST((tensor.data == b.at(name).data), name);
}

BOOST_AUTO_TEST_CASE(what_is_not_there) {
  BOOST_TEST(refuses(golden("detr"), "images need its convolutional backbone, which is not here: give inputs_embeds",
                     {.given_inputs = {"pixel_values"}}));
  const ChangedConfig auxiliary("detr", "\"auxiliary_loss\": false", "\"auxiliary_loss\": true");
  BOOST_TEST(refuses(auxiliary.path(), "auxiliary_loss is true; only false is supported"));
  const ChangedConfig patches("clip", "\"patch_size\": 8", "\"patch_size\": 7");
  BOOST_TEST(refuses(patches.path(), "vision_config: patch_size is 7; it must divide image_size 24"));
  const ChangedConfig act("clip", "\"quick_gelu\"", "\"mish\"");
  BOOST_TEST(refuses(act.path(), "text_config: hidden_act is \"mish\"; the functions are"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test

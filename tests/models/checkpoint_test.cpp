// Published models against the results of their published implementations, and against themselves: padding, caches,
// static and dynamic, other element types.

#include "static_models.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/model.hpp>
#include <treadle/io/json.hpp>
#include <treadle/models/bert.hpp>
#include <treadle/models/gpt2.hpp>
#include <treadle/models/t5.hpp>
#include <treadle/models/transformer.hpp>

#include <algorithm>

namespace treadle::test {

namespace {

/// The folders of tests/data/models.
std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden("")))
    if (std::filesystem::exists(entry.path() / "case.json")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The sizes of the golden checkpoints.
struct GoldenBert : Model<[] {
  return models::bert({.vocabulary = 120,
                       .width = 48,
                       .layers = 2,
                       .heads = 4,
                       .hidden = 96,
                       .positions = 64,
                       .pooler = true,
                       .masked_language = true,
                       .next_sentence = true});
}> {};
struct GoldenGpt2 : Model<[] {
  return models::gpt2({.vocabulary = 130, .width = 48, .layers = 2, .heads = 4, .hidden = 192, .positions = 64});
}> {};
struct GoldenT5 : Model<[] {
  return models::t5({.vocabulary = 130,
                     .width = 48,
                     .encoder_layers = 2,
                     .decoder_layers = 2,
                     .heads = 4,
                     .head_dim = 12,
                     .hidden = 96});
}> {};
struct GoldenTransformer : Model<[] {
  return models::transformer({.vocabulary = 70,
                              .width = 32,
                              .heads = 4,
                              .hidden = 64,
                              .encoder_layers = 2,
                              .decoder_layers = 2,
                              .inputs = {.padding = true}});
}> {};

/// The rows [first, first + count) of dim 1 of batch element `b`.
io::Tensor rows(const io::Tensor& t, std::int64_t b, std::int64_t first, std::int64_t count) {
  io::Tensor r(f32, {count, t.shape[2]});
  std::copy_n(t.as<float>().begin() + (b * t.shape[1] + first) * t.shape[2], count * t.shape[2], r.as<float>().begin());
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoints)

BOOST_AUTO_TEST_CASE(results_of_the_published_implementations) {
  for (const std::string& name : golden_models()) {
    const Tensors inputs = inputs_of(golden(name)), expected = expected_of(golden(name));
    BOOST_REQUIRE(!expected.empty());
    const models::LoadedModel loaded = load(golden(name), inputs);
    BOOST_TEST(loaded.model_type == io::read_json(golden(name) / "case.json")["op"].get<std::string>());
    for (const BackendInfo& backend : backends()) {
      BoundModel model = loaded.bind({.backend = backend.name, .float64 = backend.float64});
      const Tensors results = models::run_model(model, loaded, inputs);
      BOOST_TEST_CONTEXT(name << " on " << backend.name) {
        for (const auto& [output, want] : expected) {
          BOOST_REQUIRE(results.contains(output));
          BOOST_TEST(tolerances_apart(results.at(output), want) < 1, output);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(static_models_give_the_same_bits) {
  static_gives_the_same_bits<GoldenBert>("bert");
  static_gives_the_same_bits<GoldenGpt2>("gpt2");
  static_gives_the_same_bits<GoldenT5>("t5");
  static_gives_the_same_bits<GoldenTransformer>("transformer");
}

BOOST_AUTO_TEST_CASE(half_precision_and_shards) {
  // Values that f16 and bf16 hold give the bits of the f32 file; two shards give those of one.
  const Tensors inputs = inputs_of(golden("gpt2"));
  Folder f32_folder, f16_folder, sharded;
  const io::Safetensors from = io::Safetensors::open(golden("gpt2"));
  std::vector<RawTensor> whole, half, first, second;
  for (const io::StoredTensor& t : from.tensors()) {
    RawTensor a{t.name, "F32", t.shape, {}}, b{t.name, "BF16", t.shape, {}};
    for (std::size_t i = 0; i < t.bytes.size(); i += 4) {
      const std::byte zero[] = {std::byte{0}, std::byte{0}};
      a.bytes.insert(a.bytes.end(), zero, zero + 2);
      a.bytes.insert(a.bytes.end(), t.bytes.begin() + static_cast<std::ptrdiff_t>(i) + 2,
                     t.bytes.begin() + static_cast<std::ptrdiff_t>(i) + 4);
      b.bytes.insert(b.bytes.end(), t.bytes.begin() + static_cast<std::ptrdiff_t>(i) + 2,
                     t.bytes.begin() + static_cast<std::ptrdiff_t>(i) + 4);
    }
    (whole.size() % 2 == 0 ? first : second).push_back(a);
    whole.push_back(std::move(a));
    half.push_back(std::move(b));
  }
  for (const Folder* f : {&f32_folder, &f16_folder, &sharded})
    std::filesystem::copy_file(golden("gpt2") / "config.json", f->path / "config.json");
  write_safetensors(f32_folder.path / "model.safetensors", whole);
  write_safetensors(f16_folder.path / "model.safetensors", half);
  write_safetensors(sharded.path / "a.safetensors", first);
  write_safetensors(sharded.path / "b.safetensors", second);
  std::string map;
  for (const RawTensor& t : first) map += (map.empty() ? "\"" : ",\"") + t.name + "\":\"a.safetensors\"";
  for (const RawTensor& t : second) map += ",\"" + t.name + "\":\"b.safetensors\"";
  sharded.write("model.safetensors.index.json", "{\"metadata\":{},\"weight_map\":{" + map + "}}");
  const Tensors want = run(f32_folder.path, inputs);
  for (const Folder* f : {&f16_folder, &sharded})
    for (const auto& [name, tensor] : run(f->path, inputs)) BOOST_TEST((tensor.data == want.at(name).data), name);
}

BOOST_AUTO_TEST_CASE(padding_changes_nothing) {
  // BERT: a short text alone and padded beside a long one.
  const Tensors alone = run(golden("bert"), {{"input_ids", ids_of({1, 3}, {5, 9, 70})}});
  const Tensors padded = run(golden("bert"), {{"input_ids", ids_of({2, 5}, {5, 9, 70, 0, 0, 8, 7, 6, 5, 4})},
                                              {"attention_mask", ids_of({2, 5}, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1})}});
  BOOST_TEST(tolerances_apart(rows(padded.at("hidden"), 0, 0, 3), alone.at("hidden")) < 1);
  // GPT-2 and Llama: padding before the text, with positions that do not count it.
  for (const char* name : {"gpt2", "llama"}) {
    const Tensors short_text = run(golden(name), {{"input_ids", ids_of({1, 3}, {5, 9, 70})}});
    const Tensors left = run(golden(name), {{"input_ids", ids_of({2, 5}, {1, 1, 5, 9, 70, 8, 7, 6, 5, 4})},
                                            {"attention_mask", ids_of({2, 5}, {0, 0, 1, 1, 1, 1, 1, 1, 1, 1})},
                                            {"position_ids", ids_of({2, 5}, {0, 0, 0, 1, 2, 0, 1, 2, 3, 4})}});
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(tolerances_apart(rows(left.at("logits"), 0, 2, 3), short_text.at("logits")) < 1);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace treadle::test

#pragma once
// A published checkpoint as a model that runs: config.json says which, model.safetensors holds its parameters.
//
//   const LoadedModel loaded = load_checkpoint("bert-base-uncased");
//   BoundModel model = loaded.bind({.backend = "simd"});
//   auto results = run_model(model, loaded, {{"input_ids", ids}});   // binds batch and length by the shapes

#include <treadle/backends/bound_model.hpp>
#include <treadle/graph/graph.hpp>
#include <treadle/io/safetensors.hpp>
#include <treadle/io/tensor.hpp>
#include <treadle/ops/variant.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::models {

struct LoadOptions {
  /// Names of the inputs that runs will give; a model takes no padding mask and counts positions itself unless asked.
  /// Empty: what the model needs, without padding.
  std::vector<std::string> given_inputs{};
  /// In the place of the model's own attention (of the encoder, of an encoder–decoder); not Longformer's.
  AttentionVariant attention{};
  /// BERT and decoders: a boolean input [⌈seq / block⌉, ⌈seq / block⌉] of this name, that `attention` looks up
  /// (block_table).
  std::string block_table{};
  std::int64_t block = 0;
  bool cache = false;  ///< decoders: what earlier tokens left in states (models/generation.hpp)
  /// BERT and decoders: what each layer hands on, as the output `layers` [layers, batch, seq, width].
  bool every_layer = false;
  /// Of the same folder: the model uses its file and what was converted from it. It need not outlive the model.
  const struct LoadedModel* shared = nullptr;
};

/// What an input is if it is not given.
struct InputDefault {
  enum class Kind : std::uint8_t { zeros, ones, positions_after_padding } kind = Kind::zeros;
  std::string input, like;         ///< its shape is that of the input `like`
  std::int64_t padding_index = 0;  ///< positions_after_padding: ids of `like` that are padding
};

struct LoadedModel {
  std::string model_type;
  Graph graph;            ///< after the passes
  Graph encoder;          ///< of an encoder–decoder with a cache, whose `graph` is the decoder; else empty
  Parameters parameters;  ///< where the file holds f32 in the model's order, its memory, which is mapped and stays so
  std::vector<InputDefault> defaults;
  std::int64_t positions = 0;          ///< tokens that a sequence may have; 0: any number
  std::int64_t window = 0;             ///< keys that every layer sees at most, where its cache is a ring; else 0
  std::int32_t start_id = 0;           ///< of an encoder–decoder: the token before the first one
  std::vector<std::int32_t> stop_ids;  ///< tokens that end a text: eos_token_id
  std::vector<NamedSize> least;        ///< dims that runs need at least so much of
  std::shared_ptr<const io::Safetensors> file;

  BoundModel bind(BindOptions options = {}) const { return BoundModel(graph.view(), parameters, options); }
};

/// A folder with config.json and model.safetensors (or its index and shards). Throws Error: a model_type or an option
/// that is not supported, by name; parameters that are missing, unexpected or of a wrong shape, all of them at once.
LoadedModel load_checkpoint(const std::filesystem::path& folder, const LoadOptions& options = {});

/// Parameters, and the file whose memory they are.
struct LoadedParameters {
  Parameters parameters;
  std::shared_ptr<const io::Safetensors> file;
};

/// The parameters of a model that is declared in the program, by the names of the folder's model_type:
///
///   struct BertBase : Model<[] { return models::bert({}); }> {};
///   const auto loaded = models::load_parameters(BertBase::source.view(), "bert-base-uncased");
///   BoundModel model = BertBase::bind(loaded.parameters);
///
/// Throws as load_checkpoint.
LoadedParameters load_parameters(GraphView graph, const std::filesystem::path& folder);

/// Binds dims by the inputs' shapes, fills in what is not given, runs, and gives every output. Integers are converted.
/// Throws Error: an input that is missing, unknown or of a wrong shape, ids outside the vocabulary, a sequence longer
/// than the table of positions.
std::map<std::string, io::Tensor> run_model(BoundModel& model, const LoadedModel& loaded,
                                            std::map<std::string, io::Tensor> inputs);

}  // namespace treadle::models

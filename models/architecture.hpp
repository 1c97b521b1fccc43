#pragma once
// How published architectures are read: from the keys of a config.json to a graph, the names of its parameters in the
// checkpoint, and what inputs stand for if they are not given. Not installed, as config.hpp.

#include <treadle/graph/graph.hpp>
#include <treadle/models/checkpoint.hpp>
#include <treadle/models/config.hpp>
#include <treadle/models/names.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::models {

struct Description {
  Graph graph;
  Graph encoder{};  ///< of an encoder–decoder with a cache: what fills `graph`'s states cross_k and cross_v
  std::vector<NameRule> names;
  /// What published names may begin with, or not: "bert." stands before all but the heads' parameters, where the
  /// checkpoint is of a model with a head.
  std::string prefix;
  /// Tensors that checkpoints hold and the model does not need: buffers, and copies of tied weights. Patterns with *.
  std::vector<std::string> unused;
  std::vector<InputDefault> defaults;
  std::int64_t start_id = 0;     ///< of an encoder–decoder: the token before the first one
  std::int64_t positions = 0;    ///< tokens that a sequence may have; 0: any number
  std::int64_t window = 0;       ///< of a decoder with a cache: keys that every layer sees at most; 0: all
  std::vector<NamedSize> least;  ///< as LoadedModel's
};

/// What a model's reader asks of the checkpoint and its caller.
struct Request {
  const Config& config;
  const LoadOptions& options;
  /// Whether the checkpoint has a tensor of this published name, with or without the prefix.
  std::function<bool(std::string_view prefix, std::string_view name)> has;

  /// Whether the caller will give this input.
  bool given(std::string_view input) const;
};

struct Architecture {
  std::string_view model_type;  ///< of config.json
  std::string_view summary;
  Description (*describe)(const Request&);
};

Description describe_bert(const Request&);
Description describe_roberta(const Request&);
Description describe_longformer(const Request&);
Description describe_gpt2(const Request&);
Description describe_llama(const Request&);
Description describe_mistral(const Request&);
Description describe_qwen2(const Request&);
Description describe_transformer(const Request&);
Description describe_marian(const Request&);
Description describe_bahdanau(const Request&);
Description describe_t5(const Request&);
Description describe_vit(const Request&);
Description describe_big_bird(const Request&);
Description describe_funnel(const Request&);
Description describe_clip(const Request&);
Description describe_detr(const Request&);
Description describe_linear_transformer(const Request&);
Description describe_performer(const Request&);

/// The list: adding a model adds its file and a line here (architectures.cpp).
std::span<const Architecture> architectures();

}  // namespace treadle::models

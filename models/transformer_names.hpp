#pragma once
// What the readers of the Transformer and its relatives share. Not installed, as architecture.hpp.

#include <treadle/models/architecture.hpp>
#include <treadle/models/transformer.hpp>

namespace treadle::models {

/// The options that all of them have, under the names of torch.nn.Transformer's arguments; without the vocabulary.
TransformerConfig read_transformer(const Request& r);

/// Rules for layers whose queries, keys and values lie in one in_proj_weight, as nn.MultiheadAttention has them.
std::vector<NameRule> transformer_layer_names();

}  // namespace treadle::models

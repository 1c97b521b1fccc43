#pragma once
// The attention weights of a checkpoint on given tokens.

#include "weight_maps.hpp"

#include <treadle/io/tensor.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace treadle::cli {

/// What a model reads, and what its tokens are called; labels may be missing.
struct ModelInput {
  std::map<std::string, io::Tensor> tensors;
  std::vector<std::string> source, target;  ///< labels of input_ids and of decoder_input_ids
};

/// One map for each kind of attention: encoder self-attention, decoder self-attention (no query sees a later key),
/// cross-attention; of the first batch element. Throws Error: what the checkpoint's loader or the run does not take, a
/// model without softmax attention, more than 1024 tokens.
std::vector<WeightMap> checkpoint_weights(const std::filesystem::path& folder, ModelInput input,
                                          const BindOptions& bind, const AttentionVariant& attention = {});

/// A sentence as the checkpoint's tokenizer cuts it, at most `most` tokens; `target` for a model with a decoder of its
/// own beside the encoder (empty: the same sentence).
ModelInput sentence_input(const std::filesystem::path& folder, const std::string& sentence, const std::string& target,
                          std::int64_t most = 64);

}  // namespace treadle::cli

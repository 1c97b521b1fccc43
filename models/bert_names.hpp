#pragma once
// What the readers of BERT and its relatives share. Not installed, as architecture.hpp.

#include <treadle/models/architecture.hpp>
#include <treadle/models/bert.hpp>

namespace treadle::models {

/// The options that all of them have.
BertConfig read_bert(const Request& r);

/// Rules for the layers, which hold `_global` projections too where there are any.
std::vector<NameRule> bert_layer_names();

/// A description of `graph` as checkpoints of RoBERTa and of Longformer are made: the head lm_head, positions that
/// count what is no padding.
Description roberta_description(Graph graph, const BertConfig& config, const Request& r, std::string prefix);

}  // namespace treadle::models

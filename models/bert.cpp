// Names and options of BERT and RoBERTa, as the Transformers library has them.

#include <treadle/models/bert_names.hpp>

#include <utility>

namespace treadle::models {

BertConfig read_bert(const Request& r) {
  const Config& c = r.config;
  c.only("position_embedding_type", {"absolute"});
  c.only("is_decoder", {false});
  c.only("add_cross_attention", {false});
  BertConfig m;
  m.vocabulary = c.integer("vocab_size");
  m.width = c.integer("hidden_size");
  m.layers = c.integer("num_hidden_layers");
  m.heads = c.integer("num_attention_heads");
  m.hidden = c.integer("intermediate_size");
  m.positions = c.integer("max_position_embeddings");
  m.segments = c.integer("type_vocab_size");
  m.function = c.function_or("hidden_act", "gelu");
  m.eps = c.number_or("layer_norm_eps", 1e-12);
  m.tied = c.flag_or("tie_word_embeddings", true);
  m.padding = r.given("attention_mask");
  m.given_positions = r.given("position_ids");
  m.every_layer = r.options.every_layer;
  m.attention = r.options.attention;
  m.block_table = r.options.block_table;
  m.block = r.options.block;
  return m;
}

std::vector<NameRule> bert_layer_names() {
  return {{"*.attention.q_global.*", "*.attention.self.query_global.*"},
          {"*.attention.k_global.*", "*.attention.self.key_global.*"},
          {"*.attention.v_global.*", "*.attention.self.value_global.*"},
          {"*.attention.q.*", "*.attention.self.query.*"},
          {"*.attention.k.*", "*.attention.self.key.*"},
          {"*.attention.v.*", "*.attention.self.value.*"},
          {"*.attention.out.*", "*.attention.output.dense.*"},
          {"*.mlp.up.*", "*.intermediate.dense.*"},
          {"*.mlp.down.*", "*.output.dense.*"}};
}

Description roberta_description(Graph graph, const BertConfig& config, const Request& r, std::string prefix) {
  Description d;
  d.graph = std::move(graph);
  d.names = bert_layer_names();
  d.names.push_back({"lm_head.LayerNorm.*", "lm_head.layer_norm.*"});
  d.names.push_back({"cls.predictions.bias", "lm_head.bias"});
  d.names.push_back({"cls.predictions.decoder.weight", "lm_head.decoder.weight"});
  d.prefix = std::move(prefix);
  d.unused = {"*embeddings.position_ids", "lm_head.decoder.bias"};
  if (config.tied) d.unused.emplace_back("lm_head.decoder.weight");
  d.defaults = {{InputDefault::Kind::zeros, "token_type_ids", "input_ids"},
                {InputDefault::Kind::ones, "attention_mask", "input_ids"},
                {InputDefault::Kind::positions_after_padding, "position_ids", "input_ids",
                 r.config.integer_or("pad_token_id", 1, 0)}};
  return d;
}

Description describe_bert(const Request& r) {
  BertConfig m = read_bert(r);
  m.pooler = r.has("bert.", "pooler.dense.weight");
  m.masked_language = r.has("bert.", "cls.predictions.transform.dense.weight");
  m.next_sentence = m.pooler && r.has("bert.", "cls.seq_relationship.weight");
  Description d;
  d.graph = bert(m);
  d.names = bert_layer_names();
  d.prefix = "bert.";
  d.unused = {"*embeddings.position_ids", "cls.predictions.decoder.bias"};
  if (m.tied) d.unused.emplace_back("cls.predictions.decoder.weight");
  d.defaults = {{InputDefault::Kind::zeros, "token_type_ids", "input_ids"},
                {InputDefault::Kind::ones, "attention_mask", "input_ids"}};
  return d;
}

Description describe_roberta(const Request& r) {
  BertConfig m = read_bert(r);
  m.given_positions = true;
  m.head = "lm_head";
  m.pooler = r.has("roberta.", "pooler.dense.weight");
  m.masked_language = r.has("roberta.", "lm_head.dense.weight");
  return roberta_description(bert(m), m, r, "roberta.");
}

}  // namespace treadle::models

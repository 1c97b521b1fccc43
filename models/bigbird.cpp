// Names and options of BigBird, as the Transformers library has them.

#include <treadle/models/bert_names.hpp>
#include <treadle/models/bigbird.hpp>

namespace treadle::models {

Description describe_big_bird(const Request& r) {
  const Config& c = r.config;
  BigBirdConfig m;
  m.base = read_bert(r);
  m.base.function = c.function_or("hidden_act", "gelu_new");
  m.base.scaled_embeddings = c.flag_or("rescale_embeddings", false);
  m.base.pooler = r.has("bert.", "pooler.weight");
  m.base.masked_language = r.has("bert.", "cls.predictions.transform.dense.weight");
  m.base.next_sentence = m.base.pooler && r.has("bert.", "cls.seq_relationship.weight");
  m.bias = c.flag_or("use_bias", true);
  c.only("attention_type", {"block_sparse", "original_full"});
  m.block = c.integer_or("block_size", 64);
  m.random = c.integer_or("num_random_blocks", 3, 0);
  m.given_blocks = r.given("random_blocks");
  // A variant that was asked for takes the place of the blocks.
  if (c.text_or("attention_type", "block_sparse") == "original_full" || m.base.attention.name != "softmax") m.block = 0;
  if (m.block == 0 && m.given_blocks) c.refuse("attention_type", "random_blocks are for block_sparse");
  if (m.given_blocks && m.random == 0) c.refuse("num_random_blocks", "random_blocks need 1 or more");
  Description d;
  d.graph = big_bird_model(m);
  d.names = bert_layer_names();
  d.names.push_back({"pooler.dense.*", "pooler.*"});
  d.prefix = "bert.";
  d.unused = {"*embeddings.position_ids", "*embeddings.token_type_ids", "cls.predictions.decoder.bias"};
  if (m.base.tied) d.unused.emplace_back("cls.predictions.decoder.weight");
  d.defaults = {{InputDefault::Kind::zeros, "token_type_ids", "input_ids"},
                {InputDefault::Kind::ones, "attention_mask", "input_ids"}};
  return d;
}

}  // namespace treadle::models

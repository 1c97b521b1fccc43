// Names and options of Longformer, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/longformer.hpp>

namespace treadle::models {

Description describe_longformer(const Request& r) {
  const Config& c = r.config;
  LongformerConfig m;
  BertConfig& base = m.base;
  base.vocabulary = c.integer("vocab_size");
  base.width = c.integer("hidden_size");
  base.layers = c.integer("num_hidden_layers");
  base.heads = c.integer("num_attention_heads");
  base.hidden = c.integer("intermediate_size");
  base.positions = c.integer("max_position_embeddings");
  base.segments = c.integer("type_vocab_size");
  base.function = c.function_or("hidden_act", "gelu");
  base.eps = c.number_or("layer_norm_eps", 1e-12);
  base.tied = c.flag_or("tie_word_embeddings", true);
  base.head = "lm_head";
  base.pooler = r.has("longformer.", "pooler.dense.weight");
  base.masked_language = r.has("longformer.", "lm_head.dense.weight");
  m.windows = c.integers("attention_window", base.layers, 2);
  for (const std::int64_t w : m.windows)
    if (w % 2 != 0) c.refuse("attention_window", "even numbers are needed, half to each side");
  const std::int64_t padding = c.integer_or("pad_token_id", 1, 0);
  Description d;
  d.graph = longformer(m);
  for (const std::string kind : {"", "_global"}) {
    d.names.push_back({"*.attention.q" + kind + ".*", "*.attention.self.query" + kind + ".*"});
    d.names.push_back({"*.attention.k" + kind + ".*", "*.attention.self.key" + kind + ".*"});
    d.names.push_back({"*.attention.v" + kind + ".*", "*.attention.self.value" + kind + ".*"});
  }
  d.names.push_back({"*.attention.out.*", "*.attention.output.dense.*"});
  d.names.push_back({"*.mlp.up.*", "*.intermediate.dense.*"});
  d.names.push_back({"*.mlp.down.*", "*.output.dense.*"});
  d.names.push_back({"lm_head.LayerNorm.*", "lm_head.layer_norm.*"});
  d.names.push_back({"cls.predictions.bias", "lm_head.bias"});
  d.names.push_back({"cls.predictions.decoder.weight", "lm_head.decoder.weight"});
  d.prefix = "longformer.";
  d.unused = {"*embeddings.position_ids", "lm_head.decoder.bias"};
  if (base.tied) d.unused.emplace_back("lm_head.decoder.weight");
  d.defaults = {{InputDefault::Kind::zeros, "token_type_ids", "input_ids"},
                {InputDefault::Kind::ones, "attention_mask", "input_ids"},
                {InputDefault::Kind::zeros, "global_attention_mask", "input_ids"},
                {InputDefault::Kind::positions_after_padding, "position_ids", "input_ids", padding}};
  return d;
}

}  // namespace treadle::models

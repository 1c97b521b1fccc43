// Names and options of Longformer, as the Transformers library has them.

#include <treadle/models/bert_names.hpp>
#include <treadle/models/longformer.hpp>

namespace treadle::models {

Description describe_longformer(const Request& r) {
  LongformerConfig m;
  m.base = read_bert(r);
  m.base.head = "lm_head";
  m.base.pooler = r.has("longformer.", "pooler.dense.weight");
  m.base.masked_language = r.has("longformer.", "lm_head.dense.weight");
  m.windows = r.config.integers("attention_window", m.base.layers, 2);
  for (const std::int64_t w : m.windows)
    if (w % 2 != 0) r.config.refuse("attention_window", "even numbers are needed, half to each side");
  Description d = roberta_description(longformer(m), m.base, r, "longformer.");
  d.defaults.push_back({InputDefault::Kind::zeros, "global_attention_mask", "input_ids"});
  return d;
}

}  // namespace treadle::models

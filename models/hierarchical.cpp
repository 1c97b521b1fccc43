// Names and options of Funnel-Transformer, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/hierarchical.hpp>

namespace treadle::models {

Description describe_funnel(const Request& r) {
  const Config& c = r.config;
  if (r.options.attention.name != "softmax") c.refuse("model_type", "no variant takes the place of its attention");
  // Two ways to compute the same scores.
  c.only("attention_type", {"relative_shift", "factorized"});
  c.only("separate_cls", {true});
  c.only("truncate_seq", {true});
  c.only("pool_q_only", {true});
  c.only("pooling_type", {"mean", "max"});
  c.only("type_vocab_size", {3});
  FunnelConfig m;
  m.vocabulary = c.integer("vocab_size");
  m.width = c.integer("d_model");
  if (m.width % 2 != 0) c.refuse("d_model", "an even number is needed, for sines and cosines");
  m.heads = c.integer("n_head");
  m.head_dim = c.integer("d_head");
  m.hidden = c.integer("d_inner");
  const bool list = c.has("block_sizes") && c.json()["block_sizes"].is_array() && !c.json()["block_sizes"].empty();
  const std::int64_t blocks = list ? static_cast<std::int64_t>(c.json()["block_sizes"].size()) : 1;
  m.blocks = c.integers("block_sizes", blocks, 1);
  if (c.has("block_repeats"))
    for (const std::int64_t times : c.integers("block_repeats", blocks, 1))
      if (times != 1) c.refuse("block_repeats", "every layer is used once: only 1 for each block is supported");
  m.decoder_layers = r.has("funnel.", "decoder.layers.0.attention.q_head.weight") ? c.integer("num_decoder_layers") : 0;
  m.function = c.function_or("hidden_act", "gelu_new");
  m.eps = c.number_or("layer_norm_eps", 1e-9);
  m.largest = c.text_or("pooling_type", "mean") == "max";
  m.padding = r.given("attention_mask");
  m.masked_language = m.decoder_layers > 0 && r.has("", "lm_head.bias");
  m.tied = c.flag_or("tie_word_embeddings", true);
  Description d;
  d.graph = funnel(m);
  d.prefix = "funnel.";
  d.least = {{"seq", (std::int64_t{1} << (m.blocks.size() - 1)) + 1}};  // below, the published code does not pool
  if (m.tied) d.unused.emplace_back("lm_head.weight");
  d.defaults = {{InputDefault::Kind::zeros, "token_type_ids", "input_ids"},
                {InputDefault::Kind::ones, "attention_mask", "input_ids"}};
  return d;
}

}  // namespace treadle::models

// Names and options of T5, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/t5.hpp>

namespace treadle::models {

Description describe_t5(const Request& r) {
  const Config& c = r.config;
  c.only("is_encoder_decoder", {true});
  T5Config m;
  m.vocabulary = c.integer("vocab_size");
  m.width = c.integer("d_model");
  m.encoder_layers = c.integer("num_layers");
  m.decoder_layers = c.integer_or("num_decoder_layers", m.encoder_layers);
  m.heads = c.integer("num_heads");
  m.head_dim = c.integer("d_kv");
  m.hidden = c.integer("d_ff");
  m.buckets = c.integer_or("relative_attention_num_buckets", 32, 4);
  m.max_distance = c.integer_or("relative_attention_max_distance", 128);
  m.eps = c.number_or("layer_norm_epsilon", 1e-6);
  // "relu", "gated-gelu": whose gelu is the one with tanh.
  const std::string kind = c.text_or("feed_forward_proj", "relu");
  m.gated = kind.rfind("gated-", 0) == 0;
  if (kind == "relu" || kind == "gated-relu")
    m.function = activation::relu;
  else if (kind == "gated-gelu")
    m.function = activation::gelu_tanh;
  else if (kind == "gelu")
    m.function = activation::gelu;
  else if (kind == "gated-silu" || kind == "silu")
    m.function = activation::silu;
  else
    c.refuse("feed_forward_proj", "relu, gelu, silu and their gated- forms are supported");
  // T5 1.1 saved by version 5 of Transformers says that all is tied, and holds a matrix of its own.
  m.tied = c.flag_or("tie_word_embeddings", true) &&
           (c.flag_or("scale_decoder_outputs", true) || !r.has("", "lm_head.weight"));
  m.scaled_output = c.flag_or("scale_decoder_outputs", m.tied);
  m.padding = r.given("attention_mask");
  m.attention = r.options.attention;
  Description d;
  if (r.options.cache) {
    d.graph = t5_decoder(m);
    d.encoder = t5_encoder(m);
    d.start_id = c.integer_or("decoder_start_token_id", 0, 0);
  } else {
    d.graph = t5(m);
  }
  for (const std::string attention : {"SelfAttention", "EncDecAttention"})
    d.names.push_back({"*." + attention + ".out.*", "*." + attention + ".o.*"});
  d.names.push_back({"*.DenseReluDense.up.*", "*.DenseReluDense.wi.*"});
  d.names.push_back({"*.DenseReluDense.down.*", "*.DenseReluDense.wo.*"});
  d.names.push_back({"*.DenseReluDense.gate_proj.*", "*.DenseReluDense.wi_0.*"});
  d.names.push_back({"*.DenseReluDense.up_proj.*", "*.DenseReluDense.wi_1.*"});
  d.names.push_back({"*.DenseReluDense.down_proj.*", "*.DenseReluDense.wo.*"});
  d.unused = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
              // Some converted files hold a table that no layer reads.
              "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  if (m.tied) d.unused.emplace_back("lm_head.weight");
  d.defaults = {{InputDefault::Kind::ones, "attention_mask", "input_ids"}};
  return d;
}

}  // namespace treadle::models

// Options of the linear Transformer and of Performer. No published config.json has them: keys are those that BERT and
// Llama have for the same things.

#include <treadle/models/architecture.hpp>
#include <treadle/models/linear_transformer.hpp>

namespace treadle::models {

namespace {

LinearTransformerConfig read_linear_transformer(const Request& r) {
  const Config& c = r.config;
  if (r.options.attention.name != "softmax") c.refuse("model_type", "no variant takes the place of its attention");
  LinearTransformerConfig m;
  m.vocabulary = c.integer("vocab_size");
  m.width = c.integer("hidden_size");
  m.layers = c.integer("num_hidden_layers");
  m.heads = c.integer("num_attention_heads");
  m.hidden = c.integer_or("intermediate_size", 4 * m.width);
  m.positions = c.integer("max_position_embeddings");
  m.function = c.function_or("hidden_act", "gelu");
  m.eps = c.number_or("layer_norm_eps", 1e-5);
  c.only("position_embedding_type", {"learned", "sinusoidal"});
  m.sinusoidal = c.text_or("position_embedding_type", "learned") == "sinusoidal";
  m.norm_first = c.flag_or("norm_first", false);
  m.tied = c.flag_or("tie_word_embeddings", false);
  m.given_positions = r.given("position_ids");
  m.state = r.options.cache;
  m.every_layer = r.options.every_layer;
  return m;
}

Description description(const LinearTransformerConfig& m) {
  Description d;
  d.graph = linear_transformer_lm(m);
  d.positions = m.positions;
  if (m.tied) d.unused.emplace_back("lm_head.weight");
  return d;
}

}  // namespace

Description describe_linear_transformer(const Request& r) {
  LinearTransformerConfig m = read_linear_transformer(r);
  r.config.only("feature_map", {"elu_plus_one"});
  m.attention_eps = r.config.number_or("attention_eps", 1e-6);
  return description(m);
}

Description describe_performer(const Request& r) {
  LinearTransformerConfig m = read_linear_transformer(r);
  r.config.only("feature_map", {"favor"});
  m.features = r.config.integer("num_features");
  return description(m);
}

}  // namespace treadle::models

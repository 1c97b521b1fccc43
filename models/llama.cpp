// Names and options of Llama, Mistral and Qwen2, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/llama.hpp>

namespace treadle::models {

namespace {

/// `placed`: positions are given, one by one.
RopeScaling scaling_of(const Config& c, std::int64_t positions, bool placed) {
  // Newer files keep the base of the angles in the same object.
  const char* key = c.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!c.has(key)) return {};
  const Config s = c.object(key);
  const std::string kind = s.text_or("rope_type", s.text_or("type", "default"));
  const double factor = s.number_or("factor", 1);
  const std::int64_t original = s.integer_or("original_max_position_embeddings", positions);
  if (kind == "default") return {};
  if (kind == "linear") return linear_scaling(factor);
  if (kind == "dynamic" && placed)
    s.refuse(s.has("rope_type") ? "rope_type" : "type",
             "with a cache or position_ids default, linear, yarn and llama3 are supported: dynamic follows the length");
  if (kind == "dynamic") return dynamic_ntk_scaling(factor, original);
  if (kind == "yarn")
    return yarn_scaling(factor, original,
                        {.beta_fast = s.number_or("beta_fast", 32),
                         .beta_slow = s.number_or("beta_slow", 1),
                         .attention_factor = s.number_or("attention_factor", 0)});
  if (kind == "llama3")
    return llama3_scaling(factor, original, s.number_or("low_freq_factor", 1), s.number_or("high_freq_factor", 4));
  s.refuse(s.has("rope_type") ? "rope_type" : "type", "default, linear, dynamic, yarn and llama3 are supported");
}

LlamaConfig read(const Request& r) {
  const Config& c = r.config;
  LlamaConfig m;
  m.vocabulary = c.integer("vocab_size");
  m.width = c.integer("hidden_size");
  m.layers = c.integer("num_hidden_layers");
  m.heads = c.integer("num_attention_heads");
  m.kv_heads = c.integer_or("num_key_value_heads", m.heads);
  if (!c.has("head_dim") && m.width % m.heads != 0)
    c.refuse("num_attention_heads", "it must divide hidden_size " + std::to_string(m.width));
  m.head_dim = c.integer_or("head_dim", m.width / m.heads);
  m.hidden = c.integer("intermediate_size");
  m.function = c.function_or("hidden_act", "silu");
  m.eps = c.number_or("rms_norm_eps", 1e-6);
  m.rope_base = c.number_or(
      "rope_theta", c.has("rope_parameters") ? c.object("rope_parameters").number_or("rope_theta", 10000) : 10000);
  m.scaling = scaling_of(c, c.integer_or("max_position_embeddings", 2048), r.options.cache || r.given("position_ids"));
  m.tied = c.flag_or("tie_word_embeddings", false);
  m.inputs = {r.given("attention_mask"), r.given("position_ids"), r.options.cache, r.options.block_table,
              r.options.block};
  m.attention = r.options.attention;
  m.every_layer = r.options.every_layer;
  return m;
}

/// Newer files list the kind of every layer: it must be what the window says.
void check_layers(const Config& c, const LlamaConfig& m) {
  if (!c.has("layer_types")) return;
  const nlohmann::json& kinds = c.json()["layer_types"];
  std::vector<std::string> want;
  for (std::int64_t i = 0; i < m.layers; ++i)
    want.emplace_back(m.window > 0 && i >= m.dense_layers ? "sliding_attention" : "full_attention");
  if (kinds != nlohmann::json(want))
    c.refuse("layer_types", "with the other options it can only be " + nlohmann::json(want).dump());
}

Description describe(const LlamaConfig& m) {
  Description d;
  d.graph = llama(m);
  d.window = m.inputs.cache && m.dense_layers == 0 ? m.window : 0;
  d.names = {{"layers.*.self_attn.q.*", "layers.*.self_attn.q_proj.*"},
             {"layers.*.self_attn.k.*", "layers.*.self_attn.k_proj.*"},
             {"layers.*.self_attn.v.*", "layers.*.self_attn.v_proj.*"},
             {"layers.*.self_attn.out.*", "layers.*.self_attn.o_proj.*"}};
  d.prefix = "model.";
  d.unused = {"*rotary_emb.inv_freq"};
  if (m.tied) d.unused.emplace_back("lm_head.weight");
  return d;
}

}  // namespace

Description describe_llama(const Request& r) {
  r.config.only("pretraining_tp", {1});
  LlamaConfig m = read(r);
  m.qkv_bias = m.out_bias = r.config.flag_or("attention_bias", false);
  m.mlp_bias = r.config.flag_or("mlp_bias", false);
  check_layers(r.config, m);
  return describe(m);
}

Description describe_mistral(const Request& r) {
  LlamaConfig m = read(r);
  m.window = r.config.integer_or("sliding_window", 0);
  check_layers(r.config, m);
  return describe(m);
}

Description describe_qwen2(const Request& r) {
  LlamaConfig m = read(r);
  m.qkv_bias = true;
  if (r.config.flag_or("use_sliding_window", false)) {
    m.window = r.config.integer_or("sliding_window", 0);
    m.dense_layers = r.config.integer_or("max_window_layers", 28, 0);
    if (m.dense_layers >= m.layers) m.window = 0;
  }
  check_layers(r.config, m);
  return describe(m);
}

}  // namespace treadle::models

// Names and options of CLIP, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/clip.hpp>

namespace treadle::models {

namespace {

ClipTower read_tower(const Config& c, const ClipTower& published) {
  ClipTower t;
  t.width = c.integer_or("hidden_size", published.width);
  t.layers = c.integer_or("num_hidden_layers", published.layers);
  t.heads = c.integer_or("num_attention_heads", published.heads);
  t.hidden = c.integer_or("intermediate_size", published.hidden);
  t.function = c.function_or("hidden_act", "quick_gelu");
  t.eps = c.number_or("layer_norm_eps", 1e-5);
  return t;
}

/// Older files have a tower twice; then the second one counts.
Config tower(const Config& c, const std::string& name) {
  return c.object(c.has(name + "_config_dict") ? name + "_config_dict" : name + "_config");
}

}  // namespace

Description describe_clip(const Request& r) {
  const Config text = tower(r.config, "text"), vision = tower(r.config, "vision");
  ClipConfig m;
  m.text = read_tower(text, m.text);
  m.vision = read_tower(vision, m.vision);
  m.vocabulary = text.integer_or("vocab_size", m.vocabulary);
  m.positions = text.integer_or("max_position_embeddings", m.positions);
  m.end = text.integer_or("eos_token_id", m.end, 0);
  if (m.end == 2) m.end = -1;  // what files said before the key was right
  m.image = vision.integer_or("image_size", m.image);
  m.patch = vision.integer_or("patch_size", m.patch);
  if (m.image % m.patch != 0) vision.refuse("patch_size", "it must divide image_size " + std::to_string(m.image));
  m.channels = vision.integer_or("num_channels", m.channels);
  m.projection = r.config.integer_or("projection_dim", m.projection);
  m.padding = r.given("attention_mask");
  m.given_positions = r.given("position_ids");
  m.attention = r.options.attention;
  Description d;
  d.graph = clip(m);
  d.names = {{"*.self_attn.out.*", "*.self_attn.out_proj.*"},
             {"*.self_attn.q.*", "*.self_attn.q_proj.*"},
             {"*.self_attn.k.*", "*.self_attn.k_proj.*"},
             {"*.self_attn.v.*", "*.self_attn.v_proj.*"},
             {"*.mlp.up.*", "*.mlp.fc1.*"},
             {"*.mlp.down.*", "*.mlp.fc2.*"}};
  d.unused = {"*.embeddings.position_ids"};
  d.defaults = {{InputDefault::Kind::ones, "attention_mask", "input_ids"}};
  return d;
}

}  // namespace treadle::models

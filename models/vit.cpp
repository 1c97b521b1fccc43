// Names and options of ViT, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/vit.hpp>

namespace treadle::models {

Description describe_vit(const Request& r) {
  const Config& c = r.config;
  c.only("pooler_act", {"tanh"});
  VitConfig m;
  m.image = c.integer("image_size");
  m.patch = c.integer("patch_size");
  if (m.image % m.patch != 0) c.refuse("patch_size", "it must divide image_size " + std::to_string(m.image));
  m.channels = c.integer_or("num_channels", 3);
  m.width = c.integer("hidden_size");
  m.layers = c.integer("num_hidden_layers");
  m.heads = c.integer("num_attention_heads");
  m.hidden = c.integer("intermediate_size");
  m.function = c.function_or("hidden_act", "gelu");
  m.eps = c.number_or("layer_norm_eps", 1e-12);
  m.qkv_bias = c.flag_or("qkv_bias", true);
  m.pooler = r.has("vit.", "pooler.dense.weight");
  if (r.has("vit.", "classifier.weight")) m.classes = c.labels();
  m.attention = r.options.attention;
  Description d;
  d.graph = vit(m);
  d.names = {{"encoder.layer.*.attention.q.*", "encoder.layer.*.attention.attention.query.*"},
             {"encoder.layer.*.attention.k.*", "encoder.layer.*.attention.attention.key.*"},
             {"encoder.layer.*.attention.v.*", "encoder.layer.*.attention.attention.value.*"},
             {"encoder.layer.*.attention.out.*", "encoder.layer.*.attention.output.dense.*"},
             {"encoder.layer.*.mlp.up.*", "encoder.layer.*.intermediate.dense.*"},
             {"encoder.layer.*.mlp.down.*", "encoder.layer.*.output.dense.*"}};
  d.prefix = "vit.";
  d.unused = {"*embeddings.mask_token"};
  return d;
}

}  // namespace treadle::models

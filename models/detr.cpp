// Names and options of DETR, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/detr.hpp>

namespace treadle::models {

Description describe_detr(const Request& r) {
  const Config& c = r.config;
  if (r.given("pixel_values"))
    c.refuse("model_type",
             "images need its convolutional backbone, which is not here: give inputs_embeds, the features behind the "
             "backbone and input_projection, and spatial_position_embeddings");
  c.only("auxiliary_loss", {false});
  DetrConfig m;
  m.width = c.integer("d_model");
  m.queries = c.integer("num_queries");
  m.encoder_layers = c.integer("encoder_layers");
  m.decoder_layers = c.integer("decoder_layers");
  m.encoder_heads = c.integer("encoder_attention_heads");
  m.decoder_heads = c.integer("decoder_attention_heads");
  m.encoder_hidden = c.integer("encoder_ffn_dim");
  m.decoder_hidden = c.integer("decoder_ffn_dim");
  m.function = c.function_or("activation_function", "relu");
  m.classes = r.has("", "class_labels_classifier.weight") ? c.labels() : 0;
  m.padding = r.given("attention_mask");
  m.attention = r.options.attention;
  Description d;
  d.graph = detr(m);
  // Published files say out_proj and fc1 where the library's modules now say o_proj and mlp.fc1.
  const bool modules = r.has("model.", "encoder.layers.0.mlp.fc1.weight");
  d.names = {{"*_attn.q.*", "*_attn.q_proj.*"},
             {"*_attn.k.*", "*_attn.k_proj.*"},
             {"*_attn.v.*", "*_attn.v_proj.*"},
             {"*_attn.out.*", modules ? "*_attn.o_proj.*" : "*_attn.out_proj.*"},
             {"*.mlp.up.*", modules ? "*.mlp.fc1.*" : "*.fc1.*"},
             {"*.mlp.down.*", modules ? "*.mlp.fc2.*" : "*.fc2.*"}};
  d.prefix = "model.";
  d.unused = {"backbone.*", "input_projection.*", "position_embedding.*"};
  return d;
}

}  // namespace treadle::models

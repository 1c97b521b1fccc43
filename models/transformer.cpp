// Names and options of the Transformer: as a PyTorch module of nn.Embedding, nn.Transformer and nn.Linear saves them,
// and of Marian's models, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/transformer_names.hpp>

namespace treadle::models {

namespace {

/// The graph, or the two that generation has.
void set_graphs(Description& d, const TransformerConfig& m, const Request& r) {
  const bool both = m.encoder_layers > 0 && m.decoder_layers > 0;
  if (both && r.options.cache) {
    d.graph = transformer_decoder(m);
    d.encoder = transformer_encoder(m);
    d.start_id = r.config.integer_or("decoder_start_token_id", 0, 0);
  } else {
    d.graph = transformer(m);
  }
  if (m.encoder_layers == 0 || !d.encoder.nodes.empty()) d.positions = m.positions;  // of the decoder
  d.defaults = {{InputDefault::Kind::ones, "attention_mask", "input_ids"}};
}

}  // namespace

TransformerConfig read_transformer(const Request& r) {
  const Config& c = r.config;
  c.only("bias", {true});
  TransformerConfig m;
  m.width = c.integer_or("d_model", 512, 2);
  m.heads = c.integer_or("nhead", 8);
  if (m.width % m.heads != 0) c.refuse("nhead", "it must divide d_model " + std::to_string(m.width));
  m.encoder_layers = c.integer_or("num_encoder_layers", 6, 0);
  m.decoder_layers = c.integer_or("num_decoder_layers", 6, 0);
  m.hidden = c.integer_or("dim_feedforward", 2048);
  m.function = c.function_or("activation", "relu");
  m.eps = c.number_or("layer_norm_eps", 1e-5);
  m.pre_norm = c.flag_or("norm_first", false);
  m.final_norm = c.flag_or("final_norm", true);
  m.scaled_embeddings = c.flag_or("scale_embedding", true);
  c.only("position_embedding", {"sinusoidal", "learned"});
  m.learned = c.text_or("position_embedding", "sinusoidal") == "learned";
  m.positions = c.integer_or("max_len", 5000);
  const bool generator = r.has("transformer.", "generator.weight");
  m.tied = c.flag_or("tie_word_embeddings", !generator);
  m.head_bias = r.has("transformer.", "generator.bias");
  m.inputs.padding = r.given("attention_mask");
  m.attention = r.options.attention;
  return m;
}

std::vector<NameRule> transformer_layer_names() {
  return {{"*_attn.q.weight", "*_attn.in_proj_weight", false, 0, 3},
          {"*_attn.k.weight", "*_attn.in_proj_weight", false, 1, 3},
          {"*_attn.v.weight", "*_attn.in_proj_weight", false, 2, 3},
          {"*_attn.q.bias", "*_attn.in_proj_bias", false, 0, 3},
          {"*_attn.k.bias", "*_attn.in_proj_bias", false, 1, 3},
          {"*_attn.v.bias", "*_attn.in_proj_bias", false, 2, 3},
          {"*_attn.out.*", "*_attn.out_proj.*"},
          {"*.ffn.up.*", "*.linear1.*"},
          {"*.ffn.down.*", "*.linear2.*"}};
}

Description describe_transformer(const Request& r) {
  const Config& c = r.config;
  TransformerConfig m = read_transformer(r);
  if (m.encoder_layers == 0 && m.decoder_layers == 0)
    c.refuse("num_decoder_layers", "an encoder or a decoder has at least one layer");
  const bool both = m.encoder_layers > 0 && m.decoder_layers > 0;
  if (both && !c.has("vocab_size")) {
    m.vocabulary = c.integer("src_vocab_size");
    m.target_vocabulary = c.integer("tgt_vocab_size");
  } else {
    m.vocabulary = c.integer("vocab_size");
  }
  m.head = m.decoder_layers > 0 || r.has("transformer.", "generator.weight") || c.has("tie_word_embeddings");
  if (!both) m.inputs.given_positions = r.given("position_ids");
  m.inputs.cache = m.encoder_layers == 0 && r.options.cache;
  Description d;
  set_graphs(d, m, r);
  d.names = transformer_layer_names();
  d.prefix = "transformer.";
  d.unused = {"*pos_encoder.pe", "*positional_encoding.*"};
  if (m.tied) d.unused.emplace_back("generator.weight");
  return d;
}

Description describe_marian(const Request& r) {
  const Config& c = r.config;
  c.only("is_encoder_decoder", {true});
  c.only("share_encoder_decoder_embeddings", {true});
  c.only("tie_word_embeddings", {true});
  c.only("static_position_embeddings", {true});
  for (const char* option : {"normalize_before", "normalize_embedding", "add_final_layer_norm"})
    c.only(option, {false});
  TransformerConfig m;
  m.vocabulary = c.integer("vocab_size");
  c.only("decoder_vocab_size", {m.vocabulary});
  m.width = c.integer("d_model", 2);
  m.heads = c.integer("encoder_attention_heads");
  c.only("decoder_attention_heads", {m.heads});
  if (m.width % m.heads != 0) c.refuse("encoder_attention_heads", "it must divide d_model " + std::to_string(m.width));
  m.hidden = c.integer("encoder_ffn_dim");
  c.only("decoder_ffn_dim", {m.hidden});
  m.encoder_layers = c.integer("encoder_layers");
  m.decoder_layers = c.integer("decoder_layers");
  m.sines_first = true;
  m.function = c.function_or("activation_function", "gelu");
  m.scaled_embeddings = c.flag_or("scale_embedding", false);
  m.head_bias = true;
  m.positions = c.integer("max_position_embeddings");
  m.inputs.padding = r.given("attention_mask");
  m.attention = r.options.attention;
  Description d;
  set_graphs(d, m, r);
  d.names = {{"embedding.weight", "shared.weight"},
             {"generator.bias", "final_logits_bias"},
             {"*.self_attn.q.*", "*.self_attn.q_proj.*"},
             {"*.self_attn.k.*", "*.self_attn.k_proj.*"},
             {"*.self_attn.v.*", "*.self_attn.v_proj.*"},
             {"*.self_attn.out.*", "*.self_attn.out_proj.*"},
             {"*.multihead_attn.q.*", "*.encoder_attn.q_proj.*"},
             {"*.multihead_attn.k.*", "*.encoder_attn.k_proj.*"},
             {"*.multihead_attn.v.*", "*.encoder_attn.v_proj.*"},
             {"*.multihead_attn.out.*", "*.encoder_attn.out_proj.*"},
             {"*.ffn.up.*", "*.fc1.*"},
             {"*.ffn.down.*", "*.fc2.*"},
             {"*.norm1.*", "*.self_attn_layer_norm.*"},
             {"encoder.*.norm2.*", "encoder.*.final_layer_norm.*"},
             {"decoder.*.norm2.*", "decoder.*.encoder_attn_layer_norm.*"},
             {"decoder.*.norm3.*", "decoder.*.final_layer_norm.*"}};
  d.prefix = "model.";
  d.unused = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "*.embed_positions.weight",
              "lm_head.weight"};
  return d;
}

}  // namespace treadle::models

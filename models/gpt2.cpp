// Names and options of GPT-2, as the Transformers library has them.

#include <treadle/models/architecture.hpp>
#include <treadle/models/gpt2.hpp>

namespace treadle::models {

Description describe_gpt2(const Request& r) {
  const Config& c = r.config;
  c.only("scale_attn_by_inverse_layer_idx", {false});
  c.only("add_cross_attention", {false});
  Gpt2Config m;
  m.vocabulary = c.integer("vocab_size");
  m.width = c.integer("n_embd");
  m.layers = c.integer("n_layer");
  m.heads = c.integer("n_head");
  m.hidden = c.integer_or("n_inner", 4 * m.width);
  m.positions = c.integer("n_positions");
  m.function = c.function_or("activation_function", "gelu_new");
  m.eps = c.number_or("layer_norm_epsilon", 1e-5);
  m.scaled = c.flag_or("scale_attn_weights", true);
  m.tied = c.flag_or("tie_word_embeddings", true) || !r.has("transformer.", "lm_head.weight");
  m.inputs = {r.given("attention_mask"), r.given("position_ids"), r.options.cache, r.options.block_table,
              r.options.block};
  m.attention = r.options.attention;
  m.every_layer = r.options.every_layer;
  Description d;
  d.graph = gpt2(m);
  d.positions = m.positions;
  // Conv1D: [in, out]; queries, keys and values in one.
  d.names = {{"h.*.attn.q.*", "h.*.attn.c_attn.*", true, 0, 3}, {"h.*.attn.k.*", "h.*.attn.c_attn.*", true, 1, 3},
             {"h.*.attn.v.*", "h.*.attn.c_attn.*", true, 2, 3}, {"h.*.attn.out.*", "h.*.attn.c_proj.*", true},
             {"h.*.mlp.up.*", "h.*.mlp.c_fc.*", true},          {"h.*.mlp.down.*", "h.*.mlp.c_proj.*", true}};
  d.prefix = "transformer.";
  d.unused = {"*h.*.attn.bias", "*h.*.attn.masked_bias"};
  if (m.tied) d.unused.emplace_back("lm_head.weight");
  return d;
}

}  // namespace treadle::models

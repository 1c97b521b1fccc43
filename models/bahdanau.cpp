// Names and options of the decoder with additive attention: torch.nn.Transformer's, and those of the alignment model.

#include <treadle/models/bahdanau.hpp>
#include <treadle/models/transformer_names.hpp>

namespace treadle::models {

Description describe_bahdanau(const Request& r) {
  const Config& c = r.config;
  c.only("num_encoder_layers", {0});
  BahdanauConfig m;
  m.decoder = read_transformer(r);
  m.decoder.vocabulary = c.integer("vocab_size");
  if (m.decoder.decoder_layers == 0) c.refuse("num_decoder_layers", "at least one layer is needed");
  m.annotations = c.integer("encoder_width");
  m.alignment = c.integer("alignment_width");
  Description d;
  d.graph = bahdanau(m);
  d.names = transformer_layer_names();
  d.names.push_back({"*.alignment.query.weight", "*.alignment.W.weight"});
  d.names.push_back({"*.alignment.key.weight", "*.alignment.U.weight"});
  d.names.push_back({"*.alignment.score.weight", "*.alignment.v.weight"});
  d.names.push_back({"*.context.weight", "*.alignment.C.weight"});
  if (m.decoder.tied) d.unused.emplace_back("generator.weight");
  return d;
}

}  // namespace treadle::models

#include <treadle/models/architecture.hpp>

#include <algorithm>

namespace treadle::models {

std::span<const Architecture> architectures() {
  static constexpr Architecture all[] = {
      {"bert", "encoder; masked language and next sentence heads", describe_bert},
      {"roberta", "encoder; masked language head", describe_roberta},
      {"longformer", "encoder with windows and global tokens", describe_longformer},
      {"gpt2", "decoder with learned positions", describe_gpt2},
      {"llama", "decoder with rotary positions, grouped heads, SwiGLU", describe_llama},
      {"mistral", "the same with a sliding window", describe_mistral},
      {"qwen2", "the same with biases of queries, keys and values", describe_qwen2},
      {"transformer", "encoder, decoder or both, as torch.nn.Transformer", describe_transformer},
      {"marian", "translation models on the same graph", describe_marian},
      {"bahdanau", "decoder with additive attention to given states", describe_bahdanau},
      {"t5", "encoder–decoder with relative biases", describe_t5},
      {"vit", "image classification", describe_vit},
      {"big_bird", "encoder with blocks: window, global, random", describe_big_bird},
      {"funnel", "encoder that pools between blocks, decoder back to every token", describe_funnel},
      {"clip", "text and images in one space", describe_clip},
      {"detr", "object queries over features of an image", describe_detr},
      {"linear_transformer", "decoder with linear attention, elu + 1", describe_linear_transformer},
      {"performer", "the same with positive random features", describe_performer},
  };
  return all;
}

bool Request::given(std::string_view input) const {
  return std::find(options.given_inputs.begin(), options.given_inputs.end(), input) != options.given_inputs.end();
}

}  // namespace treadle::models

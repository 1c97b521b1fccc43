#pragma once
// Text from a decoder: prompts in, tokens out, with the keys and values of earlier tokens in a cache.
//
//   const LoadedModel loaded = load_checkpoint("gpt2", {.cache = true});
//   Generator generator(loaded);
//   const Generation g = generator.generate({{464, 3797}}, {.max_new_tokens = 20, .stop_ids = loaded.stop_ids});
//
// The sequences of a batch may have different lengths: each stands at its own positions, so that none sees padding.
// Layers that see a window of keys keep a ring of them; those of the linear family a state of constant size. Steps
// allocate nothing.

#include <treadle/backends/bound_model.hpp>
#include <treadle/models/checkpoint.hpp>
#include <treadle/models/sampler.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace treadle::models {

struct GenerationOptions {
  std::int64_t max_new_tokens = 32;
  Sampling sampling{};
  std::vector<std::int32_t> stop_ids{};  ///< a sequence ends behind one of them
  /// Beam search (with greedy sampling): the hypotheses that are followed for each prompt; the best one is the result.
  std::int64_t beams = 1;
  double length_penalty = 1;  ///< a hypothesis is worth Σ log p / length^penalty
  /// Called with each token as it is chosen, by number of the prompt; false ends that sequence. Not with beams.
  std::function<bool(std::size_t sequence, std::int32_t token)> on_token{};
};

enum class StopReason : std::uint8_t { length, stop_token, callback };

struct Generation {
  struct Sequence {
    std::vector<std::int32_t> tokens;  ///< behind the prompt, a stop token last
    /// Σ log p of the tokens, p = softmax(logits), whatever the sampling.
    double log_probability = 0;
    StopReason reason = StopReason::length;
  };
  std::vector<Sequence> sequences;
  /// The prompts, up to the logits of their last tokens; and all steps behind that, of which there is one less than
  /// tokens.
  std::int64_t prefill_tokens = 0, decode_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
  double plan_seconds = 0;  ///< for the lengths of this call; the first time weights are packed too
};

class Generator {
 public:
  /// Prompts are read in parts of at most `chunk` tokens: memory beside the cache grows with a part, not the prompt.
  /// `loaded` must outlive the generator. Throws Error if it was loaded without a cache or has no logits.
  explicit Generator(const LoadedModel& loaded, BindOptions options = {}, std::int64_t chunk = 512);
  Generator(Generator&&) noexcept;
  ~Generator();

  /// Throws Error: no prompt or an empty one, ids outside the vocabulary, more tokens than the model has positions,
  /// prompts of different lengths for a model whose state has no positions (the linear family), options that make no
  /// sense.
  Generation generate(const std::vector<std::vector<std::int32_t>>& prompts, const GenerationOptions& options = {});

  /// Bytes of what is kept of earlier tokens, for the batch and lengths of the last call.
  std::size_t cache_bytes() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace treadle::models

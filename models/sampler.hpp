#pragma once
// How the next token is chosen from a model's logits.

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace treadle::models {

/// The defaults take the most probable token. Otherwise a token is drawn from softmax(logits / temperature), from the
/// `top_k` most probable ones (Fan et al. 2018), and of those from the fewest that have a probability of `top_p`
/// together (nucleus sampling: Holtzman et al. 2020).
struct Sampling {
  double temperature = 0;  ///< 0: greedy; of equal logits the first
  std::int64_t top_k = 0;  ///< 0: all
  double top_p = 1;
  std::uint64_t seed = 0;  ///< sequence i of a batch draws numbers of its own, from (seed, i)
};

/// Draws tokens for one sequence. Allocates when it is made, not when it draws.
class Sampler {
 public:
  /// Throws Error: a temperature below 0, a top_k below 0, a top_p outside (0, 1].
  Sampler(const Sampling& sampling, std::int64_t vocabulary, std::uint64_t sequence);

  /// An index into `logits`, which are finite or −inf. Throws Error if none is above −inf, or one is
  /// NaN or inf.
  std::int32_t draw(std::span<const float> logits);

 private:
  Sampling sampling_;
  std::mt19937_64 numbers_;
  std::vector<std::pair<float, std::int32_t>> candidates_;  ///< logits and tokens, the most probable first
  std::vector<double> weights_;
};

/// log Σ exp of logits, in double.
double log_sum_exp(std::span<const float> logits);

}  // namespace treadle::models

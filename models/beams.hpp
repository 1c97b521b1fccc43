#pragma once
// Beam search for one sequence: which tokens to go on with, and when nothing better can come.
//
// A hypothesis is worth Σ log p / length^penalty, its length the tokens generated, the stop token among them (Wu et al.
// 2016, §7, with the simpler normalisation that libraries use).

#include <cstdint>
#include <span>
#include <vector>

namespace treadle::models {

class Beams {
 public:
  /// Allocates for so many tokens.
  Beams(std::int64_t beams, double length_penalty, std::int64_t most_tokens, std::span<const std::int32_t> stop_ids);

  /// The next tokens by the logits of all beams [beams, vocabulary]: in the first call those of beam 0 count alone.
  /// Beam i goes on from beam parents()[i] with the token next()[i]. Hypotheses that end in a stop token are kept.
  void advance(std::span<const float> logits);

  std::span<const std::int32_t> parents() const { return parents_; }
  std::span<const std::int32_t> next() const { return next_; }
  /// Whether as many hypotheses as beams have ended and no beam is worth more now than the worst of them.
  bool done() const { return done_; }

  struct Hypothesis {
    std::vector<std::int32_t> tokens;
    double log_probability = 0, worth = 0;
    bool stopped = false;  ///< by a stop token
  };
  /// The best one; those that have not ended count too.
  Hypothesis best() const;

 private:
  struct Candidate {
    double score = 0;
    std::int32_t beam = 0, token = 0;
  };
  double worth(double score, std::size_t length) const;
  void keep(const Candidate& ended);

  std::size_t beams_;
  double penalty_;
  std::vector<std::int32_t> stop_ids_;
  bool first_ = true, done_ = false;
  std::vector<double> scores_, next_scores_;
  std::vector<std::vector<std::int32_t>> tokens_, next_tokens_;
  std::vector<std::int32_t> parents_, next_;
  std::vector<Candidate> candidates_;  ///< a heap, the worst in front
  std::vector<Hypothesis> ended_, spare_;
};

}  // namespace treadle::models

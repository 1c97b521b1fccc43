#include <treadle/backends/error.hpp>
#include <treadle/models/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace treadle::models {
namespace {

/// Differs for every sequence, and for neighbouring seeds (the finalizer of splitmix64).
std::uint64_t mixed(std::uint64_t seed, std::uint64_t sequence) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15u * (sequence + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool more_probable(const std::pair<float, std::int32_t>& a, const std::pair<float, std::int32_t>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

/// The index of the largest; the first of equal ones.
std::int32_t most_probable(std::span<const float> logits) {
  float best = -std::numeric_limits<float>::infinity();
  std::int32_t at = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < std::numeric_limits<float>::infinity()))
      throw Error("the logit of token " + std::to_string(i) + " is " + (std::isnan(logits[i]) ? "NaN" : "inf"));
    if (logits[i] > best) {
      best = logits[i];
      at = static_cast<std::int32_t>(i);
    }
  }
  if (at < 0) throw Error("no token has a logit above -inf");
  return at;
}

}  // namespace

Sampler::Sampler(const Sampling& sampling, std::int64_t vocabulary, std::uint64_t sequence)
    : sampling_(sampling), numbers_(mixed(sampling.seed, sequence)) {
  if (!(sampling.temperature >= 0) || std::isinf(sampling.temperature))
    throw Error("the temperature is " + std::to_string(sampling.temperature) + "; 0 (greedy) or more is right");
  if (sampling.top_k < 0) throw Error("top_k is " + std::to_string(sampling.top_k) + "; 0 (all) or more is right");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    throw Error("top_p is " + std::to_string(sampling.top_p) + "; more than 0 and at most 1 is right");
  if (sampling.temperature == 0) return;
  candidates_.reserve(static_cast<std::size_t>(vocabulary));
  weights_.reserve(static_cast<std::size_t>(vocabulary));
}

std::int32_t Sampler::draw(std::span<const float> logits) {
  const std::int32_t best = most_probable(logits);
  if (sampling_.temperature == 0) return best;
  const float top = logits[static_cast<std::size_t>(best)];
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity())
      candidates_.emplace_back(logits[i], static_cast<std::int32_t>(i));
  if (sampling_.top_k > 0 && static_cast<std::size_t>(sampling_.top_k) < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + (sampling_.top_k - 1), candidates_.end(),
                     more_probable);
    candidates_.resize(static_cast<std::size_t>(sampling_.top_k));
  }
  // In one order, which nth_element alone does not give.
  if (sampling_.top_k > 0 || sampling_.top_p < 1) std::sort(candidates_.begin(), candidates_.end(), more_probable);

  weights_.clear();
  double sum = 0;
  for (const auto& c : candidates_) {
    weights_.push_back(std::exp((double{c.first} - double{top}) / sampling_.temperature));
    sum += weights_.back();
  }
  std::size_t count = weights_.size();
  if (sampling_.top_p < 1) {
    double kept = 0;
    count = 0;
    while (count < weights_.size() && kept < sampling_.top_p * sum) kept += weights_[count++];
    sum = kept;
  }
  // 53 bits of the generator, whose numbers the standard fixes; its distributions it does not.
  double left = static_cast<double>(numbers_() >> 11) * 0x1p-53 * sum;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (left < weights_[i]) return candidates_[i].second;
    left -= weights_[i];
  }
  return candidates_[count - 1].second;
}

double log_sum_exp(std::span<const float> logits) {
  const double top = double{logits[static_cast<std::size_t>(most_probable(logits))]};
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x} - top);
  return top + std::log(sum);
}

}  // namespace treadle::models

#include <treadle/models/beams.hpp>
#include <treadle/models/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace treadle::models {

Beams::Beams(std::int64_t beams, double length_penalty, std::int64_t most_tokens,
             std::span<const std::int32_t> stop_ids)
    : beams_(static_cast<std::size_t>(beams)),
      penalty_(length_penalty),
      stop_ids_(stop_ids.begin(), stop_ids.end()),
      scores_(beams_, 0),
      next_scores_(beams_, 0),
      tokens_(beams_),
      next_tokens_(beams_),
      parents_(beams_, 0),
      next_(beams_, 0) {
  for (auto* list : {&tokens_, &next_tokens_})
    for (auto& t : *list) t.reserve(static_cast<std::size_t>(most_tokens));
  candidates_.reserve(beams_ * (1 + std::max<std::size_t>(stop_ids_.size(), 1)));
  // All at full length: an ended hypothesis is written over a worse one.
  spare_.resize(beams_);
  for (Hypothesis& h : spare_) h.tokens.reserve(static_cast<std::size_t>(most_tokens));
  ended_.reserve(beams_);
}

double Beams::worth(double score, std::size_t length) const {
  return score / std::pow(static_cast<double>(length), penalty_);
}

void Beams::keep(const Candidate& c) {
  const auto& before = tokens_[static_cast<std::size_t>(c.beam)];
  const double w = worth(c.score, before.size() + 1);
  auto worst = std::min_element(ended_.begin(), ended_.end(),
                                [](const Hypothesis& a, const Hypothesis& b) { return a.worth < b.worth; });
  if (ended_.size() == beams_ && w <= worst->worth) return;
  if (ended_.size() < beams_) {
    ended_.push_back(std::move(spare_[ended_.size()]));
    worst = ended_.end() - 1;
  }
  worst->tokens.assign(before.begin(), before.end());
  worst->tokens.push_back(c.token);
  worst->log_probability = c.score;
  worst->worth = w;
  worst->stopped = true;
}

void Beams::advance(std::span<const float> logits) {
  // So many that `beams` go on, whichever end.
  const std::size_t vocabulary = logits.size() / beams_, most = candidates_.capacity();
  const auto better = [](const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
  };
  candidates_.clear();
  for (std::size_t b = 0; b < (first_ ? 1 : beams_); ++b) {
    if (scores_[b] == -std::numeric_limits<double>::infinity()) continue;
    const auto row = logits.subspan(b * vocabulary, vocabulary);
    const double base = scores_[b] - log_sum_exp(row);
    for (std::size_t t = 0; t < vocabulary; ++t) {
      const Candidate c{base + double{row[t]}, static_cast<std::int32_t>(b), static_cast<std::int32_t>(t)};
      if (candidates_.size() == most && !better(c, candidates_.front())) continue;
      if (candidates_.size() == most) {
        std::pop_heap(candidates_.begin(), candidates_.end(), better);
        candidates_.pop_back();
      }
      candidates_.push_back(c);
      std::push_heap(candidates_.begin(), candidates_.end(), better);
    }
  }
  first_ = false;
  std::sort_heap(candidates_.begin(), candidates_.end(), better);

  std::size_t going = 0;
  for (std::size_t rank = 0; rank < candidates_.size() && going < beams_; ++rank) {
    const Candidate& c = candidates_[rank];
    if (std::find(stop_ids_.begin(), stop_ids_.end(), c.token) != stop_ids_.end()) {
      if (rank < beams_) keep(c);
      continue;
    }
    const auto& before = tokens_[static_cast<std::size_t>(c.beam)];
    next_tokens_[going].assign(before.begin(), before.end());
    next_tokens_[going].push_back(c.token);
    next_scores_[going] = c.score;
    parents_[going] = c.beam;
    next_[going++] = c.token;
  }
  for (; going < beams_; ++going) {  // fewer tokens than beams: these lead nowhere
    next_tokens_[going].assign(tokens_[0].begin(), tokens_[0].end());
    next_scores_[going] = -std::numeric_limits<double>::infinity();
    parents_[going] = next_[going] = 0;
  }
  std::swap(tokens_, next_tokens_);
  std::swap(scores_, next_scores_);
  if (scores_[0] == -std::numeric_limits<double>::infinity()) done_ = true;  // nothing goes on
  if (done_ || ended_.size() < beams_) return;
  double worst = std::numeric_limits<double>::infinity();
  for (const Hypothesis& h : ended_) worst = std::min(worst, h.worth);
  done_ = worth(scores_[0], tokens_[0].size()) <= worst;
}

Beams::Hypothesis Beams::best() const {
  Hypothesis best;
  bool found = false;
  for (const Hypothesis& h : ended_)
    if (!found || h.worth > best.worth) {
      best = h;
      found = true;
    }
  if (done_ && found) return best;
  for (std::size_t b = 0; b < beams_; ++b)
    if (const double w = worth(scores_[b], std::max<std::size_t>(tokens_[b].size(), 1)); !found || w > best.worth) {
      best = {tokens_[b], scores_[b], w, false};
      found = true;
    }
  return best;
}

}  // namespace treadle::models

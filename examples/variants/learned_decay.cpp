// Scores that decay with the distance as a learned table says, one row a head; beyond its end the last entry holds.

#include "try.hpp"

using namespace treadle;

inline constexpr auto learned_decay =
    score_mod([](auto score, auto, auto h, auto q, auto k) { return score - lookup("decay", h, min(abs(q - k), 31)); });

int main() {
  std::vector<float> decay;
  for (int h = 0; h < 4; ++h)
    for (int d = 0; d < 32; ++d) decay.push_back(std::sqrt(static_cast<float>(d)) / static_cast<float>(h + 1));
  AttentionVariant variant(causal);
  variant.score = learned_decay;
  return examples::try_variant("learned decay with the distance", variant, {{"decay", {4, 32}, {}, decay}});
}

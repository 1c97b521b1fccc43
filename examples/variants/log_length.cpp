// Scores times s · log n, where n is the number of keys that a query sees: attention that stays as sharp over a long
// text as over a short one (Nakanishi 2025, "scalable softmax").

#include "try.hpp"

using namespace treadle;

inline constexpr auto log_length =
    score_mod([](auto score, auto, auto, auto q, auto) { return score * (0.43 * log(1.0 * (q + 1))); });

int main() {
  AttentionVariant variant(causal);
  variant.score = log_length;
  return examples::try_variant("scores times the logarithm of the length", variant);
}

// A soft window: scores minus (distance / width)² / 2 with a width for each head, cut off where nothing is left of a
// weight, so that the cost stays linear in the length.

#include "try.hpp"

using namespace treadle;

inline constexpr auto gaussian = score_mod([](auto score, auto, auto h, auto q, auto k) {
  const auto x = (1.0 * (q - k)) / (1.5 * (h + 1));
  return score - 0.5 * x * x;
});
inline constexpr auto within_reach = mask_mod([](auto, auto h, auto q, auto k) { return abs(q - k) <= 12 * (h + 1); });

int main() {
  AttentionVariant variant(within_reach);
  variant.score = gaussian;
  return examples::try_variant("Gaussian window", variant);
}

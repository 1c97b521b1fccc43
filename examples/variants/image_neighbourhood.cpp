// Pixels of an image of 16 × 16 see the 5 × 5 pixels around them (Hassani et al. 2023, §3; at the border fewer, not
// shifted ones).

#include "try.hpp"

using namespace treadle;

inline constexpr auto neighbourhood =
    mask_mod([](auto, auto, auto q, auto k) { return (abs(q / 16 - k / 16) <= 2) & (abs(q % 16 - k % 16) <= 2); });

int main() { return examples::try_variant("5 × 5 pixels around each", neighbourhood); }

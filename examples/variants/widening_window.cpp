// A causal window that widens with the head: near heads see 16 tokens back, the last one 64.

#include "try.hpp"

using namespace treadle;

inline constexpr auto widening_window =
    causal & mask_mod([](auto, auto h, auto q, auto k) { return q - k < 16 * (h + 1); });

int main() { return examples::try_variant("window of 16 tokens times the head", widening_window); }

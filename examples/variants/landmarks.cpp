// A sliding window plus every 64th token, as landmarks that everybody keeps seeing.

#include "try.hpp"

using namespace treadle;

inline constexpr auto landmarks =
    causal & (window(31, 0) | mask_mod([](auto, auto, auto, auto k) { return k % 64 == 0; }));

int main() { return examples::try_variant("window plus every 64th token", landmarks); }

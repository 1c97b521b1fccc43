// A checkerboard: even tokens see even ones, odd see odd, so that two layers with a shift reach everything.

#include "try.hpp"

using namespace treadle;

inline constexpr auto checkerboard = mask_mod([](auto, auto, auto q, auto k) { return (q + k) % 2 == 0; });

int main() { return examples::try_variant("checkerboard", checkerboard); }

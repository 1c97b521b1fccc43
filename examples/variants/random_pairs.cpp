// A tenth of all pairs by a hash of both positions: the same pairs in every run, no table, and each token itself.

#include "try.hpp"

using namespace treadle;

inline constexpr auto random_pairs = mask_mod(
    [](auto, auto h, auto q, auto k) { return ((q * 7919 + k * 104729 + h * 1299709) % 1009 < 101) | (q == k); });

int main() { return examples::try_variant("a tenth of the pairs by a hash", random_pairs); }

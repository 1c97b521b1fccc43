// Every head looks back through a comb of its own: each token, each second, each third, each fourth (in the spirit of
// Beltagy et al. 2020, §3.1, whose dilations differ between heads).

#include "try.hpp"

using namespace treadle;

inline constexpr auto dilated_heads =
    causal & mask_mod([](auto, auto h, auto q, auto k) { return ((q - k) % (h + 1) == 0) & (q - k < 32 * (h + 1)); });

int main() { return examples::try_variant("a comb for each head", dilated_heads); }

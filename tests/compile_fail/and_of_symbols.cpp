// expect: where\(|&
// lines: 14 22
#include <treadle/graph/mask/masks.hpp>

using namespace treadle;
inline constexpr auto bad = mask_mod([](auto, auto, auto q, auto k) { return k <= q && k >= q - 4; });

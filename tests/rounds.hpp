#pragma once
// How long random tests run.

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace treadle::test {

/// TREADLE_RANDOM_ROUNDS if it is set; a hundred at most with TREADLE_FAST=1, as under sanitizers; else `usual`.
inline int random_rounds(int usual) {
  if (const char* text = std::getenv("TREADLE_RANDOM_ROUNDS")) return std::max(1, std::atoi(text));
  const char* fast = std::getenv("TREADLE_FAST");
  return fast != nullptr && std::string_view(fast) == "1" ? std::min(usual, 100) : usual;
}

}  // namespace treadle::test

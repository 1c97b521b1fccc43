// Every token sees its own paragraph and the first sentence of the text, whose length is only known at run time.

#include "try.hpp"

using namespace treadle;

inline constexpr auto first_sentence =
    mask_mod([](auto b, auto, auto, auto k) { return k < lookup<i32>("first_sentence", b); });
inline constexpr auto same_paragraph = documents("paragraph") | first_sentence;

int main() {
  std::vector<std::int32_t> paragraph;
  for (int i = 0; i < 256; ++i) paragraph.push_back(i < 40 ? 0 : i < 130 ? 1 : i < 200 ? 2 : 3);
  return examples::try_variant("same paragraph or first sentence", same_paragraph,
                               {{"paragraph", {256}, paragraph, {}}, {"first_sentence", {1}, {12}, {}}});
}

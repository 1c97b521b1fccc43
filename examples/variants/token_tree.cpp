// A token sees its ancestors in a tree, as when several drafts are verified at once (Miao et al. 2024, §4.2): node k is
// an ancestor of q if the span of k in depth-first order holds that of q.

#include "try.hpp"

using namespace treadle;

inline constexpr auto ancestors = mask_mod([](auto, auto, auto q, auto k) {
  return (lookup<i32>("enter", k) <= lookup<i32>("enter", q)) & (lookup<i32>("leave", q) <= lookup<i32>("leave", k));
});

int main() {
  // A full binary tree of 255 nodes in breadth-first order: the children of i are 2i + 1 and 2i + 2.
  std::vector<std::int32_t> enter(255), leave(255);
  int clock = 0;
  const auto visit = [&](const auto& self, int i) -> void {
    if (i >= 255) return;
    enter[static_cast<std::size_t>(i)] = clock++;
    self(self, 2 * i + 1);
    self(self, 2 * i + 2);
    leave[static_cast<std::size_t>(i)] = clock++;
  };
  visit(visit, 0);
  return examples::try_variant("ancestors in a tree", ancestors,
                               {{"enter", {255}, enter, {}}, {"leave", {255}, leave, {}}}, 255);
}

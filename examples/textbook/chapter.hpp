#pragma once
// The chapters, one file each.

#include "page.hpp"
#include "run.hpp"

#include <array>
#include <string_view>

namespace textbook {

struct Chapter {
  std::string_view name, title;
  std::string_view equation, source;  ///< the caption
  void (*write)(Page&, const Target&);
};

namespace chapter {
extern const Chapter weights, identity, heads, positions, mixtures, variance, equivariance, scores;
}  // namespace chapter

inline constexpr std::array chapters = {&chapter::weights,      &chapter::identity, &chapter::heads,
                                        &chapter::positions,    &chapter::mixtures, &chapter::variance,
                                        &chapter::equivariance, &chapter::scores};

}  // namespace textbook

#pragma once
// The check that treadle::Model makes, without what a run needs: programs that must not compile include little.

#include <treadle/graph/diagnostic.hpp>
#include <treadle/graph/freeze.hpp>
#include <treadle/ops/rules.hpp>

template <auto Build, std::size_t Capacity>
inline constexpr auto carrier = [] {
  const treadle::Graph g = Build();
  return treadle::freeze<treadle::capacity_for(Capacity)>(g, g.error);
}();

template <auto Build, std::size_t Capacity = 256>
struct Declared {
  static_assert(sizeof(treadle::diagnostic::report_t<carrier<Build, Capacity>>) > 0);
};

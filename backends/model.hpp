#pragma once
// A model declared at compile time: a named tag that holds the frozen graph, before and after the passes.
//
//   inline constexpr auto tiny = [] { treadle::Builder g; …; return g.finish(); };
//   struct Tiny : treadle::Model<tiny> {};
//
// Wrong models do not compile: the error names the node, the rule and both facts (graph/diagnostic.hpp).

#include <treadle/backends/bound_model.hpp>
#include <treadle/graph/copy.hpp>
#include <treadle/graph/diagnostic.hpp>
#include <treadle/graph/freeze.hpp>
#include <treadle/passes/pipeline.hpp>

namespace treadle {

namespace detail {
template <auto Build, std::size_t Capacity>
inline constexpr auto carrier = [] {
  const Graph g = Build();
  return freeze<capacity_for(Capacity)>(g, g.error);
}();

/// The tables of a carrier, exactly sized.
template <const auto& Carrier>
inline constexpr auto exact = freeze<Carrier.used>(Carrier, Carrier.error);

template <auto Build, std::size_t Capacity>
inline constexpr auto optimised_carrier = [] {
  Graph g = copy_of(exact<carrier<Build, Capacity>>.view());  // cheaper than to build it again
  g.error = carrier<Build, Capacity>.error;
  const Graph better = optimise(std::move(g));
  return freeze<capacity_for(Capacity)>(better, better.error);
}();

}  // namespace detail

/// `Capacity`: nodes that the declared graph may have; too small is an error with that name. A repeat's body counts
/// once.
template <auto Build, std::size_t Capacity = 1024>
struct Model {
  static_assert(sizeof(diagnostic::report_t<detail::carrier<Build, Capacity>>) > 0);

  /// The graph as declared.
  static constexpr const auto& source = detail::exact<detail::carrier<Build, Capacity>>;
  /// The graph after the passes: what is bound and run.
  static constexpr const auto& optimised = detail::exact<detail::optimised_carrier<Build, Capacity>>;

  static BoundModel bind(const Parameters& parameters, BindOptions options = {}) {
    return BoundModel(optimised.view(), parameters, options);
  }
};

}  // namespace treadle

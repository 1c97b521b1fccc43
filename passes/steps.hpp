#pragma once
// How passes are chained: `Steps(graph, observer) | pass | pass`.

#include <treadle/passes/verify.hpp>

#include <type_traits>
#include <utility>

namespace treadle {

/// Any function with this type is a pass.
using Pass = Graph (*)(Graph, PassReport*);

/// Leaves no pass out.
struct all_passes {};

/// Watches nothing, and costs nothing.
struct no_observer {};

/// Stops at the first pass that leaves a broken graph: for tests. Anything with `operator()(report, before, after)`
/// will do.
struct verifying_observer {
  std::string_view pass;  ///< that broke the graph; empty: none
  Violation violation;
  constexpr void operator()(const PassReport& report, GraphView, GraphView after) {
    if (violation) return;
    violation = verify(after);
    if (violation) pass = report.pass;
  }
};

template <class Observer, class Without = all_passes>
class Steps {
 public:
  constexpr Steps(Graph g, Observer& observer, Without without = {})
      : g_(std::move(g)), observer_(&observer), without_(without) {}

  friend constexpr Steps operator|(Steps s, Pass pass) {
    if (s.g_.error) return s;
    if constexpr (std::is_same_v<Without, Pass>) {  // g++ compares functions in no constant evaluation under sanitizers
      if (pass == s.without_) return s;
    }
    PassReport report;
    if constexpr (std::is_same_v<std::remove_cv_t<Observer>, no_observer>) {
      s.g_ = pass(std::move(s.g_), &report);
    } else {
      const Graph before = s.g_;
      s.g_ = pass(std::move(s.g_), &report);
      (*s.observer_)(std::as_const(report), before.view(), s.g_.view());
    }
    return s;
  }
  constexpr operator Graph() && { return std::move(g_); }

 private:
  Graph g_;
  Observer* observer_;
  Without without_;
};

}  // namespace treadle

#pragma once
// What tests of passes share: text in, pass, text out.

#include <treadle/graph/text.hpp>
#include <treadle/passes/steps.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

namespace treadle::test {

/// The graph in `source` after the pass, as text. Checks that both are well formed, the number of rewrites, and that a
/// second run finds nothing to do.
inline std::string run(Pass pass, std::string_view source, int rewrites) {
  Graph g = parse_graph(source);
  for (const std::string& v : violations(g)) BOOST_ERROR("before: " << v);
  PassReport report;
  g = pass(std::move(g), &report);
  for (const std::string& v : violations(g)) BOOST_ERROR("after: " << v);
  BOOST_TEST(report.rewrites == rewrites, report.pass << " rewrote " << report.rewrites << ", not " << rewrites);
  const std::string text = to_text(g);
  g = pass(std::move(g), &report);
  BOOST_TEST(report.rewrites == 0, report.pass << " rewrote again");
  BOOST_TEST(to_text(g) == text);
  return text;
}

/// The pass leaves the graph as it is.
inline void unchanged(Pass pass, std::string_view source) {
  BOOST_TEST(run(pass, source, 0) == to_text(parse_graph(source)));
}

}  // namespace treadle::test

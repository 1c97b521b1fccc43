#include <treadle/passes/verify.hpp>

#include <treadle/graph/text.hpp>

namespace treadle {

std::vector<std::string> violations(GraphView g) {
  std::vector<std::string> found;
  verifier::Context c(g);
  for (const verifier::Rule& r : verifier::rules) {
    for (std::int32_t n = 0; n < g.size(); ++n) {
      if (r.holds(c, n)) continue;
      // Names may be out of their table where ranges are broken.
      const bool printable = &r != verifier::rules;
      found.push_back("node " + std::to_string(n) + (printable ? " (" + node_name(g, n) + ")" : "") +
                      " breaks the rule: " + std::string(r.sentence));
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace treadle

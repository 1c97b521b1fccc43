#include "pass_savings.hpp"

#include "arguments.hpp"
#include "columns.hpp"

#include <treadle/models/examples.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace treadle::cli {

namespace {

struct Saving {
  std::string pass;
  int rewrites = 0, models = 0;
  std::string_view best;  ///< the model where it saves most; empty: it saved nothing anywhere
  double share = 0;       ///< of the bytes there, or, negative, of the nodes where no bytes were saved
  std::size_t nodes[2] = {}, steps[2] = {};
  double flops[2] = {}, bytes[2] = {};
};

std::string change(double before, double after, const std::string& from, const std::string& to) {
  return before == after ? "=" : fmt::format("{} → {}", from, to);
}
std::string change(std::size_t before, std::size_t after) {
  return before == after ? "=" : fmt::format("{} → {}", before, after);
}
}  // namespace

std::string pass_savings(const ExplainOptions& options) {
  std::vector<Saving> savings;
  for (const models::Entry& entry : models::all) {
    const Graph graph = entry.build();
    ExplainOptions own = options;
    own.dims = usual_sizes(graph);
    const Explanation e = explain(entry.name, entry.summary, graph, own);
    for (std::size_t i = 1; i < e.stages.size(); ++i) {
      const Stage &before = e.stages[i - 1], &after = e.stages[i];
      auto s = std::find_if(savings.begin(), savings.end(), [&](const Saving& x) { return x.pass == after.pass; });
      if (s == savings.end()) s = savings.insert(savings.end(), Saving());
      s->pass = after.pass;
      if (after.rewrites == 0) continue;
      s->rewrites += after.rewrites;
      ++s->models;
      if (!before.cost || !after.cost) continue;
      const auto share = [](double a, double b) { return a > 0 ? 1 - b / a : 0; };
      const double bytes = share(before.cost->bytes, after.cost->bytes),
                   nodes = share(static_cast<double>(before.graph.nodes.size()),
                                 static_cast<double>(after.graph.nodes.size()));
      // Any saving of bytes counts for more than one of nodes alone.
      const double worth = bytes > 0 ? 1 + bytes : nodes;
      if (worth <= s->share) continue;
      s->share = worth;
      s->best = entry.name;
      const Stage* const both[] = {&before, &after};
      for (int k = 0; k < 2; ++k) {
        s->nodes[k] = both[k]->graph.nodes.size();
        s->steps[k] = both[k]->cost->steps;
        s->flops[k] = both[k]->cost->useful_flops;
        s->bytes[k] = both[k]->cost->bytes;
      }
    }
  }
  std::string text = fmt::format("{:<30}{:>8}{:>8}  {:<20}{:>12}{:>12}{:>20}  {}\n", "pass", "rewrites", "models",
                                 "saves most in", "nodes", "steps", "FLOPs", "bytes moved");
  for (const Saving& s : savings) {
    text += fmt::format("{:<30}{:>8}{:>8}", s.pass, s.rewrites, s.models);
    if (!s.best.empty())
      text += fmt::format("  {:<20}", s.best) + right(change(s.nodes[0], s.nodes[1]), 12) +
              right(change(s.steps[0], s.steps[1]), 12) +
              right(change(s.flops[0], s.flops[1], count_text(s.flops[0]), count_text(s.flops[1])), 20) + "  " +
              change(s.bytes[0], s.bytes[1], bytes_text(s.bytes[0]), bytes_text(s.bytes[1]));
    text += "\n";
  }
  return text;
}

}  // namespace treadle::cli

#include "explain_report.hpp"

#include "arguments.hpp"
#include "columns.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/graph/copy.hpp>
#include <treadle/graph/json.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/passes/pipeline.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace treadle::cli {

namespace {

BoundModel bound_to(GraphView g, const ExplainOptions& options, std::string_view backend) {
  const bool kernels = backend != "reference";
  BoundModel model(g, Parameters::random(g, 1, options.dims),
                   {.backend = backend, .isa = kernels ? std::string_view(options.isa) : std::string_view()});
  std::vector<NamedSize> sizes;
  for (const auto& [name, value] : options.dims) sizes.push_back({name, value});
  model.bind_dims(sizes);
  return model;
}

PlanCost cost_of_plan(const BoundModel& model) {
  PlanCost c;
  for (const StepInfo& s : model.steps()) {
    c.steps += !s.at_bind;
    c.useful_flops += s.useful_flops;
    c.executed_flops += s.executed_flops;
    c.bytes += s.bytes;
    c.upper_bound = c.upper_bound || s.upper_bound;
  }
  c.arena_bytes = model.arena_bytes();
  return c;
}

/// A node as the text shows it, without numbers, so that it can be found again in another graph.
std::string line_of(GraphView g, std::int32_t n) {
  std::string text(name(g.nodes[n].op));
  if (const std::string where = dotted_name(g, n); !where.empty()) text += " " + where;
  std::string attributes;
  for (const Attribute& a : g.attributes_of(n)) {
    if (a.key == key::region || a.key == key::index) continue;  // numbers, too
    attributes += fmt::format("{}{}={}", attributes.empty() ? "" : ", ", name(a.key), treadle::to_text(g, n, a));
  }
  if (!attributes.empty()) text += " {" + attributes + "}";
  if (g.nodes[n].outputs.count > 0) text += " : " + treadle::to_text(g, Value{n, 0});
  return text;
}

/// Lines of `a` that `b` does not have, each as often as it is missing, in the order of `a`.
std::vector<std::string> missing(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::map<std::string, int> there;
  for (const std::string& s : b) ++there[s];
  std::vector<std::string> lines;
  for (const std::string& s : a)
    if (there[s]-- <= 0) lines.push_back(s);
  return lines;
}

std::vector<std::string> lines_of(GraphView g) {
  std::vector<std::string> lines(g.nodes.size());
  const auto number = text_numbers(g);
  for (std::int32_t n = 0; n < g.size(); ++n)
    lines[static_cast<std::size_t>(number[static_cast<std::size_t>(n)])] = line_of(g, n);
  return lines;
}

void plan(Stage& stage, const ExplainOptions& options) {
  try {
    // The reference backend has no plan; what its graph costs is shown by that of the kernels.
    stage.cost =
        cost_of_plan(bound_to(stage.graph, options, options.backend == "reference" ? "simd" : options.backend));
  } catch (const Error& e) {
    stage.refused = e.what();
  }
}

std::vector<NodeFacts> facts_of(GraphView g, const BoundModel& model) {
  std::vector<NodeFacts> facts(g.nodes.size());
  const auto number = text_numbers(g);
  const auto fact = [&](std::int32_t n) -> NodeFacts& {
    return facts[static_cast<std::size_t>(number[static_cast<std::size_t>(n)])];
  };
  for (std::int32_t n = 0; n < g.size(); ++n) fact(n).node = n;
  for (const StepInfo& s : model.steps()) {
    if (s.node < 0) continue;
    NodeFacts& f = fact(s.node);
    const auto parts = f.kernel.empty() ? std::vector<std::string>{} : split(f.kernel, '+');
    if (std::find(parts.begin(), parts.end(), s.kernel) == parts.end())
      f.kernel += (f.kernel.empty() ? "" : " + ") + s.kernel;
    if (f.form.empty()) f.form = s.form;
    ++(s.at_bind ? f.bind_steps : f.steps);
    f.useful_flops += s.useful_flops;
    f.executed_flops += s.executed_flops;
    f.bytes += s.bytes;
    f.upper_bound = f.upper_bound || s.upper_bound;
  }
  return facts;
}

// ------------------------------------------------------------------ text

std::string flops_text(double n, bool upper_bound) { return (upper_bound ? "≤ " : "") + count_text(n); }

class TextWriter {
 public:
  TextWriter(const Explanation& e, bool colour) : e_(e), colour_(colour) {}

  std::string run() {
    std::string dims;
    for (const auto& [name, value] : e_.dims) dims += fmt::format("{}{} = {}", dims.empty() ? "" : ", ", name, value);
    out_ = fmt::format("{}: {}\n", e_.model, e_.summary);
    if (!dims.empty()) out_ += "for " + dims + "\n";
    passes();
    rewrites();
    nodes();
    memory();
    return std::move(out_);
  }

 private:
  const Explanation& e_;
  bool colour_;
  std::string out_;

  void heading(const std::string& text) { out_ += "\n" + (colour_ ? "\033[1m" + text + "\033[0m" : text) + "\n"; }
  void columns(const std::string& text) { out_ += (colour_ ? "\033[2m" + text + "\033[0m" : text) + "\n"; }

  void passes() {
    heading("Passes");
    columns(fmt::format("{:>2}  {:<30}{:>8}{:>7}{:>7}{:>11}{:>11}{:>12}{:>12}", "#", "graph", "rewrites", "nodes",
                        "steps", "FLOPs", "executed", "bytes", "arena"));
    std::vector<std::string> notes;
    for (const Stage& s : e_.stages) {
      std::string line = fmt::format("{:>2}  {:<30}{:>8}{:>7}", s.number, s.pass.empty() ? "as declared" : s.pass,
                                     s.pass.empty() ? "" : std::to_string(s.rewrites), s.graph.nodes.size());
      if (s.cost) {
        const PlanCost& c = *s.cost;
        line += fmt::format("{:>7}", c.steps) + right(flops_text(c.useful_flops, c.upper_bound), 11) +
                right(flops_text(c.executed_flops, c.upper_bound), 11) + right(bytes_text(c.bytes), 12) +
                right(bytes_text(static_cast<double>(c.arena_bytes)), 12);
      } else {
        line += fmt::format("{:>7}{:>11}{:>11}{:>12}{:>12}", "-", "-", "-", "-", "-");
        notes.push_back(fmt::format("{} cannot be planned: {}\n", s.number, s.refused));
      }
      out_ += line + "\n";
    }
    for (const std::string& n : notes) out_ += n;
  }

  void list(const std::vector<std::string>& lines, char sign) {
    for (std::size_t i = 0; i < lines.size();) {
      std::size_t same = i;
      while (same < lines.size() && lines[same] == lines[i]) ++same;
      out_ += fmt::format("  {} {}{}\n", sign, lines[i], same - i > 1 ? fmt::format("  (× {})", same - i) : "");
      i = same;
    }
  }

  void rewrites() {
    for (const Stage& s : e_.stages) {
      if (s.removed.empty() && s.added.empty()) continue;
      heading(fmt::format("{} {}: {} rewrite{}", s.number, s.pass, s.rewrites, s.rewrites == 1 ? "" : "s"));
      list(s.removed, '-');
      list(s.added, '+');
    }
  }

  /// What stands in the kernel's column where no step runs a node.
  static std::string without_step(op o, const NodeFacts& f) {
    if (f.bind_steps > 0) return "(once at bind)";
    if (o == op::mask) return "(in tiles)";
    if (o == op::concatenate || o == op::sinusoidal_positions) return "(constant)";
    return "(view)";
  }

  void nodes() {
    const GraphView g = e_.last().graph;
    const bool kernels = e_.backend != "reference";
    heading(fmt::format("Nodes on backend {}{}{}", e_.backend, kernels ? ", ISA " + e_.isa : "",
                        e_.threads > 1 ? fmt::format(", {} threads", e_.threads) : ""));
    std::vector<std::pair<std::string, const NodeFacts*>> rows;
    std::size_t width = 4, kernel_width = 6;
    const auto number = text_numbers(g);
    for (const NodeFacts& f : e_.nodes) {
      const op o = g.nodes[f.node].op;
      const bool runs = o != op::input && o != op::parameter && o != op::state && o != op::region_input &&
                        o != op::repeat && o != op::output;
      if (!runs && f.kernel.empty()) continue;
      const std::string where = dotted_name(g, f.node);
      rows.emplace_back(
          fmt::format("%{} {}{}", number[static_cast<std::size_t>(f.node)], name(o), where.empty() ? "" : " " + where),
          &f);
      width = std::max(width, rows.back().first.size());
      kernel_width = std::max({kernel_width, f.kernel.size(), f.steps == 0 ? without_step(o, f).size() : 0});
    }
    if (!kernels) {
      out_ += "Every node runs by its formula in ops/, in double or float; there is no plan and no arena.\n";
      for (const auto& [text, f] : rows) out_ += text + "\n";
      return;
    }
    columns(fmt::format("{:<{}}  {:<{}}{:>6}{:>11}{:>11}{:>12}  {}", "node", width, "kernel", kernel_width, "steps",
                        "FLOPs", "executed", "bytes", "form"));
    for (const auto& [text, f] : rows) {
      std::string line = left(text, width) + "  ";
      if (f->steps == 0) {
        line += without_step(g.nodes[f->node].op, *f);
      } else {
        line += fmt::format("{:<{}}{:>6}", f->kernel, kernel_width, f->steps) +
                right(flops_text(f->useful_flops, f->upper_bound), 11) +
                right(flops_text(f->executed_flops, f->upper_bound), 11) + right(bytes_text(f->bytes), 12) +
                (f->form.empty() ? "" : "  " + f->form);
      }
      out_ += line + "\n";
    }
  }

  void memory() {
    if (e_.backend == "reference") return;
    std::size_t sum = 0;
    for (const BufferInfo& b : e_.buffers) sum += b.bytes;
    const auto text = [](std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); };
    heading(fmt::format("Memory: arena {} for {} of buffers ({} if no result lay over an operand), workspaces {}",
                        text(e_.arena_bytes), text(sum), text(e_.separate_bytes), text(e_.workspace_bytes)));
    if (e_.buffers.empty()) {
      out_ += "Every result lies in the caller's memory or in a state.\n";
      return;
    }
    columns(fmt::format("{:>12}{:>12}  {:<12}{}", "offset", "bytes", "steps", "written first by"));
    for (const BufferInfo& b : e_.buffers)
      out_ += fmt::format("{:>12}{:>12}  {:<12}{}\n", b.offset, b.bytes,
                          fmt::format("{}-{}", b.first_step, b.last_step), b.name);
  }
};

// ------------------------------------------------------------------ JSON

using Json = nlohmann::ordered_json;

Json json_of(const Stage& s) {
  if (!s.cost) return {{"nodes", s.graph.nodes.size()}, {"refused", s.refused}};
  const PlanCost& c = *s.cost;
  return {{"nodes", s.graph.nodes.size()},      {"steps", c.steps}, {"flops", c.useful_flops},
          {"executed_flops", c.executed_flops}, {"bytes", c.bytes}, {"arena_bytes", c.arena_bytes},
          {"upper_bound", c.upper_bound}};
}

/// What a length is if nobody says: small, but long enough that tiles show.
std::int64_t usual_size(std::string_view name) {
  if (name == "batch" || name == "fresh") return 1;
  if (name == "seq" || name.ends_with("_len")) return 128;
  return 32;
}

}  // namespace

DimValues usual_sizes(const Graph& graph) {
  DimValues values;
  for (const std::string& n : dim_names(graph)) values[n] = usual_size(n);
  return values;
}

Explanation explain(std::string_view model, std::string_view summary, const Graph& graph,
                    const ExplainOptions& options) {
  Explanation e;
  e.model = model;
  e.summary = summary;
  e.stages.emplace_back();
  e.stages.back().graph = graph;
  optimise(graph, [&](const PassReport& report, GraphView before, GraphView after) {
    Stage& s = e.stages.emplace_back();
    s.number = static_cast<int>(e.stages.size()) - 1;
    s.pass = report.pass;
    s.rewrites = report.rewrites;
    s.graph = copy_of(after);
    const auto old = lines_of(before), fresh = lines_of(after);
    s.removed = missing(old, fresh);
    s.added = missing(fresh, old);
  });
  for (Stage& s : e.stages) plan(s, options);

  const GraphView last = e.last().graph;
  const BoundModel bound = bound_to(last, options, options.backend);
  e.dims = options.dims;
  e.backend = bound.backend();
  e.isa = bound.isa();
  e.threads = bound.threads();
  e.nodes = facts_of(last, bound);
  e.buffers.assign(bound.buffers().begin(), bound.buffers().end());
  e.workspace_bytes = bound.workspace_bytes();
  e.arena_bytes = bound.arena_bytes();
  e.separate_bytes = bound.arena_bytes_without_reuse();
  e.staging_bytes = bound.staging_bytes();
  return e;
}

std::string to_text(const Explanation& e, bool colour) { return TextWriter(e, colour).run(); }

std::string to_json(const Explanation& e) {
  Json j;
  j["model"] = e.model;
  j["summary"] = e.summary;
  j["dims"] = Json::object();
  for (const auto& [name, value] : e.dims) j["dims"][name] = value;
  j["backend"] = e.backend;
  j["isa"] = e.isa;
  j["threads"] = e.threads;
  j["passes"] = Json::array();
  for (std::size_t i = 1; i < e.stages.size(); ++i) {
    const Stage& s = e.stages[i];
    j["passes"].push_back({{"number", s.number},
                           {"pass", s.pass},
                           {"rewrites", s.rewrites},
                           {"before", json_of(e.stages[i - 1])},
                           {"after", json_of(s)},
                           {"removed", s.removed},
                           {"added", s.added}});
  }
  const GraphView g = e.last().graph;
  j["nodes"] = Json::array();
  for (std::size_t id = 0; id < e.nodes.size(); ++id) {
    const NodeFacts& f = e.nodes[id];
    const bool runs = !f.kernel.empty();
    j["nodes"].push_back({{"id", id},
                          {"op", name(g.nodes[f.node].op)},
                          {"name", dotted_name(g, f.node)},
                          {"kernel", runs ? Json(f.kernel) : Json()},
                          {"backend", runs ? Json(e.backend) : Json()},
                          {"isa", runs ? Json(e.isa) : Json()},
                          {"form", f.form.empty() ? Json() : Json(f.form)},
                          {"steps", f.steps},
                          {"steps_at_bind", f.bind_steps},
                          {"flops", f.useful_flops},
                          {"executed_flops", f.executed_flops},
                          {"bytes", f.bytes},
                          {"upper_bound", f.upper_bound}});
  }
  j["memory"] = {{"arena_bytes", e.arena_bytes},
                 {"arena_bytes_without_reuse", e.separate_bytes},
                 {"workspace_bytes", e.workspace_bytes},
                 {"staging_bytes", e.staging_bytes},
                 {"buffers", Json::array()}};
  for (const BufferInfo& b : e.buffers)
    j["memory"]["buffers"].push_back({{"offset", b.offset},
                                      {"bytes", b.bytes},
                                      {"first_step", b.first_step},
                                      {"last_step", b.last_step},
                                      {"name", b.name}});
  j["before"] = Json::parse(treadle::to_json(e.stages.front().graph));
  j["after"] = Json::parse(treadle::to_json(g));
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace treadle::cli

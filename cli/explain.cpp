// `treadle explain MODEL`: what each pass does to an example model and what it saves, and the plan that runs.

#include "arguments.hpp"
#include "command.hpp"
#include "explain_page.hpp"
#include "explain_report.hpp"
#include "page.hpp"
#include "pass_savings.hpp"
#include "report.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/graph/copy.hpp>
#include <treadle/graph/dot.hpp>
#include <treadle/graph/json.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace treadle::cli {

namespace {

struct Typed {
  std::string model, backend, isa, dims, format = "text", pass, output, html, trace;
  bool before = false, after = false, passes = false;
};

const models::Entry& find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const models::Entry& e : models::all) {
    if (e.name == name) return e;
    names.emplace_back(e.name);
  }
  throw Error(name.empty() ? fmt::format("name a model: {}", join(names))
                           : fmt::format("unknown model '{}': the models are {}", name, join(names)));
}

/// "seq=128,batch=2" over the model's dims.
DimValues sizes_of(const Graph& graph, const std::string& text) {
  DimValues values = usual_sizes(graph);
  const std::vector<std::string> names = dim_names(graph);
  if (text.empty()) return values;
  std::vector<std::string> given;
  for (const std::string& part : split(text)) {
    const auto sides = split(part, '=');
    if (sides.size() != 2)
      throw Error(fmt::format("--dims has '{}': write NAME=NUMBER with commas, such as batch=2,seq=128", part));
    if (!values.contains(sides[0]))
      throw Error(fmt::format("the model has no dim '{}': its dims are {}", sides[0], join(names)));
    if (std::find(given.begin(), given.end(), sides[0]) != given.end())
      throw Error(fmt::format("--dims gives dim '{}' twice", sides[0]));
    given.push_back(sides[0]);
    values[sides[0]] = parse_integer(sides[1], fmt::format("dim '{}'", sides[0]), 0, std::int64_t{1} << 40);
  }
  return values;
}

/// The graph after a pass that is named or numbered, as the report numbers them.
Graph graph_after(const Graph& graph, const std::string& pass) {
  std::vector<std::pair<std::string, Graph>> stages;
  Graph last = optimise(graph, [&](const PassReport& report, GraphView before, GraphView) {
    if (!stages.empty()) stages.back().second = copy_of(before);
    stages.emplace_back(report.pass, Graph());
  });
  if (!stages.empty()) stages.back().second = std::move(last);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(pass.data(), pass.data() + pass.size(), number);
  if (error == std::errc() && end == pass.data() + pass.size()) {
    if (number < 1 || number > stages.size())
      throw Error(fmt::format("--pass is {}: the passes are numbered from 1 to {}", pass, stages.size()));
    return stages[number - 1].second;
  }
  std::vector<std::string> names, numbers;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (std::find(names.begin(), names.end(), stages[i].first) == names.end()) names.push_back(stages[i].first);
    if (stages[i].first == pass) numbers.push_back(std::to_string(i + 1));
  }
  if (numbers.empty()) throw Error(fmt::format("unknown pass '{}': the passes are {}", pass, join(names)));
  if (numbers.size() > 1)
    throw Error(fmt::format("pass '{}' runs {} times: give one of the numbers {} instead", pass, numbers.size(),
                            join(numbers)));
  return stages[std::stoul(numbers[0]) - 1].second;
}

std::string picture(const Graph& g, const std::string& format, std::string_view title) {
  if (format == "dot") return to_dot(g, title);
  if (format == "json") return treadle::to_json(g);
  return treadle::to_text(g);
}

ExplainOptions options_of(const Typed& t) {
  ExplainOptions options;
  options.backend = parse_backend(t.backend.empty() ? "tbb" : t.backend);
  options.isa = parse_isa(t.isa);
  if (options.backend == "reference" && !t.isa.empty())
    throw Error("backend 'reference' has no ISAs: leave out --isa, or use simd or tbb");
  return options;
}

void write(const std::string& text, const std::string& output) {
  if (output.empty()) {
    fmt::print("{}", text);
  } else {
    replace_file(output, text);
  }
}

int run_passes(const Typed& t) {
  if (!t.model.empty() || !t.dims.empty() || t.before || t.after || !t.pass.empty() || t.format != "text" ||
      !t.html.empty() || !t.trace.empty())
    throw Error("--passes is about all example models: it goes with --backend, --isa and --output only");
  const ExplainOptions options = options_of(t);
  if (!t.output.empty()) require_writable(t.output);
  write(pass_savings(options), t.output);
  return 0;
}

int run(const Typed& t) {
  if (t.passes) return run_passes(t);
  const models::Entry& entry = find_model(t.model);
  if (t.format != "text" && t.format != "dot" && t.format != "json")
    throw Error(fmt::format("unknown format '{}': the formats are text, dot, json", t.format));
  if (t.before + t.after + !t.pass.empty() > 1)
    throw Error("--before, --after and --pass each name one graph: give one of them");
  ExplainOptions options = options_of(t);
  const Graph graph = entry.build();
  options.dims = sizes_of(graph, t.dims);
  if (!t.html.empty() || !t.trace.empty()) {
    if (t.before || t.after || !t.pass.empty() || t.format != "text")
      throw Error(
          "--html and --trace are about the whole model: leave out --before, --after, --pass and --format (the page "
          "shows every stage, and has DOT and JSON to download)");
    if (!t.html.empty() && (t.html == t.output || t.html == t.trace))
      throw Error(fmt::format("two options name '{}': name two files", t.html));
  }
  for (const std::string& path : {t.output, t.html, t.trace})
    if (!path.empty()) require_writable(path);
  if (!t.html.empty()) require_charts();

  std::string text;
  if (t.before) {
    text = picture(graph, t.format, fmt::format("{}, as declared", entry.name));
  } else if (!t.pass.empty()) {
    text = picture(graph_after(graph, t.pass), t.format, fmt::format("{}, after pass {}", entry.name, t.pass));
  } else if (t.after || t.format == "dot") {
    text = picture(optimise(graph), t.format, fmt::format("{}, after the passes", entry.name));
  } else {
    const Explanation e = explain(entry.name, entry.summary, graph, options);
    if (!t.html.empty()) replace_file(t.html, to_html(e));
    if (!t.trace.empty()) replace_file(t.trace, trace_of_run(e.last().graph, options));
    text = t.format == "json" ? to_json(e) : to_text(e, t.output.empty() && colours_wanted());
  }
  write(text, t.output);
  return 0;
}

}  // namespace

Command add_explain(CLI::App& app) {
  CLI::App* sub =
      app.add_subcommand("explain",
                         "Show what each pass does to an example model and what it saves, and the plan that runs:\n"
                         "kernels, forms and memory. With --before, --after, --pass or --format dot: one graph.");
  static Typed t;
  sub->add_option("model", t.model, "Name of the model")->type_name("MODEL");
  sub->add_option("--format", t.format, "text (default), json, or dot for Graphviz")->type_name("NAME");
  sub->add_flag("--before", t.before, "Only the graph as declared");
  sub->add_flag("--after", t.after, "Only the graph after all passes");
  sub->add_flag("--passes", t.passes, "For each pass, what it saves in the example model where it saves most");
  sub->add_option("--pass", t.pass, "Only the graph after this pass, by name or number")->type_name("NAME");
  sub->add_option("--dims", t.dims, "Lengths to plan for, such as batch=2,seq=128 (batch=1,seq=128)")
      ->type_name("LIST");
  sub->add_option("--backend", t.backend, "reference, simd or tbb (default)")->type_name("NAME");
  sub->add_option("--isa", t.isa, "Instruction set, see `treadle backends` (the best that this CPU has)")
      ->type_name("NAME");
  sub->add_option("--output", t.output, "Write to a file instead of the screen")->type_name("FILE");
  sub->add_option("--html", t.html, "Write a page too: every stage as a picture, savings, memory, kernels")
      ->type_name("FILE");
  sub->add_option("--trace", t.trace, "Run it on random inputs and write what ran when (Perfetto opens it)")
      ->type_name("FILE");
  std::string list = "Models:\n";
  for (const models::Entry& e : models::all) list += fmt::format("  {:<20} {}\n", e.name, e.summary);
  sub->footer(list + "\ndocs/explain.md says what the columns mean.");
  return {sub, [] { return run(t); }};
}

}  // namespace treadle::cli

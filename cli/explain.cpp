// `treadle explain MODEL`: an example model before and after each pass, and the plan that runs.

#include "arguments.hpp"
#include "command.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/graph/text.hpp>
#include <treadle/models/examples.hpp>
#include <treadle/passes/pipeline.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace treadle::cli {

namespace {

/// "2 attention, 12 linear, …", inputs and parameters aside.
std::string counts(GraphView g) {
  std::string text;
  for (int i = 0; i < op_count; ++i) {
    const int n = g.count(static_cast<op>(i));
    if (n > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, op_names[i]);
  }
  return text;
}

struct Typed {
  std::string model, backend, isa, dims;
  bool brief = false;
};

/// "seq=128,batch=2" over the model's dims; those not named get a small number.
std::vector<NamedSize> sizes_of(const std::vector<std::string>& names, const std::string& text) {
  std::map<std::string, std::int64_t> values;
  for (const std::string& n : names) values[n] = n == "batch" ? 1 : n == "fresh" ? 1 : 32;
  if (!text.empty()) {
    for (const std::string& part : split(text)) {
      const auto sides = split(part, '=');
      if (sides.size() != 2)
        throw Error(fmt::format("--dims has '{}': write NAME=NUMBER with commas, such as batch=2,seq=128", part));
      if (!values.contains(sides[0]))
        throw Error(fmt::format("the model has no dim '{}': its dims are {}", sides[0], join(names)));
      values[sides[0]] = parse_integer(sides[1], fmt::format("dim '{}'", sides[0]), 0, std::int64_t{1} << 40);
    }
  }
  std::vector<NamedSize> sizes;
  for (const std::string& n : names) sizes.push_back({n, values[n]});
  return sizes;
}

int run(const Typed& t) {
  const auto* end = std::end(models::all);
  const auto* entry =
      std::find_if(std::begin(models::all), end, [&](const models::Entry& e) { return e.name == t.model; });
  if (entry == end) {
    std::vector<std::string> names;
    for (const models::Entry& e : models::all) names.emplace_back(e.name);
    throw Error(t.model.empty() ? fmt::format("name a model: {}", join(names))
                                : fmt::format("unknown model '{}': the models are {}", t.model, join(names)));
  }
  const std::string backend = parse_backend(t.backend.empty() ? "tbb" : t.backend), isa = parse_isa(t.isa);
  const Graph graph = entry->build();
  const auto dims = dim_names(graph);
  const auto sizes = sizes_of(dims, t.dims);

  fmt::print("{}: {}\n\n== as declared: {}\n{}", entry->name, entry->summary, counts(graph), to_text(graph));
  const auto observer = [&](const PassReport& report, GraphView before, GraphView after) {
    const std::string text = to_text(after);
    if (text == to_text(before)) {
      fmt::print("\n== {}: changes nothing\n", report.pass);
    } else {
      fmt::print("\n== {}: {} rewrite{}; {}\n{}", report.pass, report.rewrites, report.rewrites == 1 ? "" : "s",
                 counts(after), t.brief ? "" : text);
    }
  };
  const Graph better = optimise(graph, observer);
  if (t.brief) fmt::print("\n== after the passes\n{}", to_text(better));

  DimValues values;
  std::string bound;
  for (const NamedSize& s : sizes) {
    values[std::string(s.name)] = s.value;
    bound += fmt::format("{}{}={}", bound.empty() ? "" : ", ", s.name, s.value);
  }
  BoundModel model(better, Parameters::random(better, 1, values), {.backend = backend, .isa = isa});
  model.bind_dims(sizes);
  fmt::print("\n== plan for {}: backend {}, {}{}, {} beside parameters and inputs\n{}", bound, model.backend(),
             model.isa(), model.threads() > 1 ? fmt::format(", {} threads", model.threads()) : "",
             bytes_text(static_cast<double>(model.planned_bytes())), model.describe());
  return 0;
}

}  // namespace

Command add_explain(CLI::App& app) {
  CLI::App* sub =
      app.add_subcommand("explain", "Show an example model before and after each pass, and the plan that runs.");
  static Typed t;
  sub->add_option("model", t.model, "Name of the model")->type_name("MODEL");
  sub->add_option("--dims", t.dims, "Lengths to plan for, such as batch=2,seq=128")->type_name("LIST");
  sub->add_option("--backend", t.backend, "reference, simd or tbb (default)")->type_name("NAME");
  sub->add_option("--isa", t.isa, "Instruction set (the best that this CPU has)")->type_name("NAME");
  sub->add_flag("--brief", t.brief, "Only the first and the last graph in full");
  std::string list = "Models:\n";
  for (const models::Entry& e : models::all) list += fmt::format("  {:<20} {}\n", e.name, e.summary);
  sub->footer(list);
  return {sub, [] { return run(t); }};
}

}  // namespace treadle::cli

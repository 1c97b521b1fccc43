#include "explain_page.hpp"

#include "machine.hpp"
#include "page.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/backends/random_fill.hpp>
#include <treadle/backends/trace.hpp>
#include <treadle/graph/dot.hpp>
#include <treadle/graph/json.hpp>
#include <treadle/io/tensor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace treadle::cli {

std::string to_html(const Explanation& e) {
  const std::string text = to_json(e);
  Json page = Json::parse(text);
  page.erase("before");
  page.erase("after");
  page["kind"] = "explain";
  page["title"] = e.model + ", explained";
  page["head"] = report_head(machine(), 0, date());
  page["stages"] = Json::array();
  for (std::size_t i = 0; i < e.stages.size(); ++i) {
    const Stage& s = e.stages[i];
    Json cost;
    if (s.cost) cost = i == 0 ? page["passes"][0]["before"] : page["passes"][i - 1]["after"];
    page["stages"].push_back({{"pass", s.pass},
                              {"rewrites", s.rewrites},
                              {"cost", std::move(cost)},
                              {"removed", s.removed},
                              {"added", s.added},
                              {"graph", Json::parse(treadle::to_json(s.graph, -1))}});
  }
  page.erase("passes");
  page["files"] = {{"json", text},
                   {"dot_before", to_dot(e.stages.front().graph, e.model + ", as declared")},
                   {"dot_after", to_dot(e.last().graph, e.model + ", after the passes")}};
  return make_page(page);
}

std::string trace_of_run(GraphView graph, const ExplainOptions& options) {
  if (options.backend == "reference") throw Error("backend 'reference' has no steps to trace: use simd or tbb");
  Trace trace;
  trace.pause();
  BoundModel model(graph, Parameters::random(graph, 1, options.dims),
                   {.backend = options.backend, .isa = options.isa, .trace = &trace});
  std::vector<NamedSize> sizes;
  for (const auto& [name, value] : options.dims) sizes.push_back({name, value});
  model.bind_dims(sizes);
  std::vector<std::pair<std::string, io::Tensor>> tensors;
  for (std::int32_t n = 0; n < graph.size(); ++n) {
    const op o = graph.nodes[static_cast<std::size_t>(n)].op;
    if (o != op::input && o != op::output) continue;
    const std::string name(graph.leaf(n));
    const TensorView spec = o == op::input ? model.input_spec(name) : model.output_spec(name);
    io::Tensor t(spec.dtype, {spec.shape.begin(), spec.shape.begin() + spec.rank});
    if (o == op::input && spec.dtype == f32) fill_normal(t.as<float>(), seed_of(name, 1));
    if (o == op::input && spec.dtype == boolean)
      std::fill(t.as<std::uint8_t>().begin(), t.as<std::uint8_t>().end(), std::uint8_t{1});
    tensors.emplace_back((o == op::input ? "i" : "o") + name, std::move(t));
  }
  std::vector<NamedTensor> in, out;
  for (auto& [name, tensor] : tensors)
    (name[0] == 'i' ? in : out).push_back({std::string_view(name).substr(1), tensor.view()});
  model.run(in, out);  // the first run warms the caches
  trace.resume();
  model.run(in, out);
  return trace.to_json();
}

}  // namespace treadle::cli

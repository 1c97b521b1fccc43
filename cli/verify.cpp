// `treadle verify`: cases of calls with expected results, on every backend and ISA.

#include "arguments.hpp"
#include "case_files.hpp"
#include "case_graphs.hpp"
#include "command.hpp"

#include <treadle/backends/backend.hpp>
#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/kernel.hpp>
#include <treadle/backends/reference/reference.hpp>
#include <treadle/models/checkpoint.hpp>
#include <treadle/passes/pipeline.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace treadle::cli {

namespace {

struct Typed {
  std::vector<std::string> paths;
  std::string backend = "all", isa = "all";
  bool complete = false;
};

/// One way of running a call.
struct Target {
  std::string backend, isa;
  bool float64 = false;
};

struct Prepared {
  io::Case test;
  std::vector<std::pair<const io::Call*, CallGraph>> calls;
  std::vector<std::string> not_supported;
  std::optional<models::LoadedModel> model;  ///< of a folder with a checkpoint: what its call runs
};

using Results = std::map<std::string, reference::Array<double>>;

std::vector<Target> targets_of(const Typed& t) {
  std::vector<std::string> isas;
  if (t.isa == "all") {
    for (int i = 0; i < kernel::isa_count; ++i)
      if (kernel::find_table(kernel::isa_list()[i].name) != nullptr) isas.emplace_back(kernel::isa_list()[i].name);
  } else {
    isas.push_back(parse_isa(t.isa));
  }
  if (t.backend != "all") parse_backend(t.backend);
  std::vector<Target> targets;
  for (const BackendInfo& b : backends()) {
    if (t.backend != "all" && t.backend != b.name) continue;
    if (!b.has_isas) {
      targets.push_back({std::string(b.name), "float64", true});
      targets.push_back({std::string(b.name), "float32", false});
      continue;
    }
    for (const std::string& isa : isas) targets.push_back({std::string(b.name), isa, false});
  }
  return targets;
}

/// The elements behind a feed's view, row-major.
std::vector<double> gathered(const Feed& f) {
  if (f.strides.empty()) return f.data;
  std::vector<double> r;
  std::vector<std::int64_t> at(f.shape.size());
  std::int64_t count = 1;
  for (const std::int64_t d : f.shape) count *= d;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, place = f.offset;
    for (std::size_t d = f.shape.size(); d-- > 0;) {
      place += rest % f.shape[d] * f.strides[d];
      rest /= f.shape[d];
    }
    r.push_back(f.data[static_cast<std::size_t>(place)]);
  }
  return r;
}

/// The runs of a call; most have one.
std::vector<CallStep> steps_of(const CallGraph& c) {
  if (!c.steps.empty()) return c.steps;
  return {{{}, c.inputs}};
}

/// Puts the results of a step behind those of the steps before, along dim 1.
void join_results(Results& all, const std::string& name, reference::Array<double> part) {
  auto& whole = all[name];
  if (whole.shape.empty()) {
    whole = std::move(part);
    return;
  }
  whole.shape[1] += part.shape[1];
  whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
}

Results run_float64(const CallGraph& c) {
  reference::Tensors<double> parameters, states;
  for (const Feed& f : c.parameters) parameters[f.name] = {f.shape, f.data};
  Results results;
  for (const CallStep& step : steps_of(c)) {
    reference::Tensors<double> inputs;
    for (const Feed& f : step.inputs) inputs[f.name] = {f.shape, gathered(f)};
    auto out = reference::evaluate<double>(c.graph, step.dims, inputs, parameters, &states);
    for (auto& [name, array] : out) join_results(results, name, std::move(array));
  }
  return results;
}

io::Tensor to_tensor(const Feed& f) {
  io::Tensor t(f64, {static_cast<std::int64_t>(f.data.size())});
  std::copy(f.data.begin(), f.data.end(), t.as<double>().begin());
  return io::convert(t, f.dtype);
}

/// Binds the step's lengths, runs, and puts the results into `r`.
void run_step(const CallGraph& c, BoundModel& model, const CallStep& step, Results& r) {
  std::vector<NamedSize> dims;
  for (const auto& [name, length] : step.dims) dims.push_back({name, length});
  model.bind_dims(dims);
  std::vector<io::Tensor> memory;
  memory.reserve(step.inputs.size());
  std::vector<NamedTensor> inputs, outputs;
  for (const Feed& f : step.inputs) {
    memory.push_back(to_tensor(f));
    TensorView v = dense_view(memory.back().view().data, f.dtype, f.shape);
    if (!f.strides.empty()) {
      v.data = static_cast<std::byte*>(v.data) +
               static_cast<std::ptrdiff_t>(f.offset) * static_cast<std::ptrdiff_t>(size_of(f.dtype));
      for (std::size_t i = 0; i < f.strides.size(); ++i) v.strides[i] = f.strides[i];
    }
    inputs.push_back({f.name, v});
  }
  std::vector<io::Tensor> results;
  results.reserve(c.outputs.size());
  for (const std::string& name : c.outputs) {
    TensorView v = model.output_spec(name);
    io::Tensor& t = results.emplace_back(v.dtype, std::vector<std::int64_t>(v.shape.begin(), v.shape.begin() + v.rank));
    if (v.dtype == f32)  // what nobody writes must not pass for a result
      for (float& x : t.as<float>()) x = std::numeric_limits<float>::quiet_NaN();
    v.data = t.view().data;
    outputs.push_back({name, v});
  }
  model.run(inputs, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const io::Tensor numbers = io::to_f64(results[i]);
    const TensorView& v = outputs[i].tensor;
    join_results(
        r, std::string(outputs[i].name),
        {{v.shape.begin(), v.shape.begin() + v.rank}, {numbers.as<double>().begin(), numbers.as<double>().end()}});
  }
}

Results run_float32(const CallGraph& c, const Target& target) {
  Parameters parameters;
  for (const Feed& f : c.parameters) parameters.own(f.name, f.shape, {f.data.begin(), f.data.end()});
  const Graph better = optimise(c.graph);
  BoundModel model(
      better, parameters,
      {.backend = target.backend, .isa = target.backend == "reference" ? "" : std::string_view(target.isa)});
  Results r;
  for (const CallStep& step : steps_of(c)) run_step(c, model, step, r);
  return r;
}

std::vector<std::int64_t> without_ones(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> r;
  for (const std::int64_t d : shape)
    if (d != 1) r.push_back(d);
  return r;
}

/// The largest |got − want| / (atol + rtol·|want|); infinite where an infinity or a NaN stands on one side only.
double worst(const reference::Array<double>& got, const io::Expected& e, io::Tolerance t) {
  const io::Tensor want_tensor = io::to_f64(e.want);
  const auto want = want_tensor.as<double>();
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (e.where && e.where->as<std::uint8_t>()[i] == 0) continue;
    const double g = got.data[i], w = want[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double ratio = std::abs(g - w) / (t.atol + t.rtol * std::abs(w));
    largest =
        std::isfinite(w) && !std::isnan(ratio) ? std::max(largest, ratio) : std::numeric_limits<double>::infinity();
  }
  return largest;
}

/// A checkpoint's model with a case's inputs.
Results run_checkpoint(const models::LoadedModel& loaded, const io::Call& call, const Target& target) {
  BoundModel model = loaded.bind({.backend = target.backend,
                                  .isa = target.backend == "reference" ? "" : std::string_view(target.isa),
                                  .float64 = target.float64});
  Results r;
  for (const auto& [name, tensor] : models::run_model(model, loaded, call.inputs)) {
    const io::Tensor numbers = io::to_f64(tensor);
    r[name] = {tensor.shape, {numbers.as<double>().begin(), numbers.as<double>().end()}};
  }
  return r;
}

struct Counts {
  int passed = 0, failed = 0, not_supported = 0, skipped = 0;
};

void print_row(const char* status, const std::string& test, const Target& target, const std::string& text) {
  fmt::print("{:<8} {:<52} {:<9} {:<9} {}\n", status, test, target.backend, target.isa, text);
}

void run_on(const Prepared& p, const Target& target, Counts& counts) {
  double largest = 0;
  int compared = 0;
  std::string problem;
  for (const auto& [call, graph] : p.calls) {
    try {
      const Results results = p.model          ? run_checkpoint(*p.model, *call, target)
                              : target.float64 ? run_float64(graph)
                                               : run_float32(graph, target);
      for (const io::Expected& e : call->outputs) {
        const auto got = results.find(e.name);
        if (got == results.end()) {
          if (p.model && e.required) problem = fmt::format("the model has no output '{}'", e.name);
          continue;
        }
        if (without_ones(got->second.shape) != without_ones(e.want.shape)) {
          problem = fmt::format("{} of {} has shape {} instead of {}", e.name, call->op,
                                io::shape_text(got->second.shape), io::shape_text(e.want.shape));
          continue;
        }
        largest = std::max(largest, worst(got->second, e, target.float64 ? p.test.f64 : p.test.f32));
        ++compared;
      }
    } catch (const std::exception& e) {
      problem = e.what();
    }
  }
  if (problem.empty() && largest <= 1) {
    ++counts.passed;
    print_row("passed", p.test.name, target,
              fmt::format("{:<10.3g} ({} result{})", largest, compared, compared == 1 ? "" : "s"));
  } else {
    ++counts.failed;
    print_row("FAILED", p.test.name, target, fmt::format("{:<10.3g} {}", largest, problem));
  }
}

/// Cases that call for files instead of tensors: one row, whatever the backend. False: the case is none of them.
bool run_files(const Prepared& p, Counts& counts) {
  if (p.test.property.op != "safetensors_open") return false;
  const Verdicts v = open_safetensors(p.test.property.attributes);
  ++(v.problem.empty() ? counts.passed : counts.failed);
  print_row(v.problem.empty() ? "passed" : "FAILED", p.test.name, {},
            fmt::format("{} of {} verdicts{}{}", v.agree, v.files, v.problem.empty() ? "" : ": ", v.problem));
  return true;
}

Prepared prepare(const std::filesystem::path& path) {
  Prepared p{io::load_case(path), {}, {}, {}};
  if (!p.test.numeric) return p;
  if (std::filesystem::exists(path / "config.json")) {
    const io::Call& call = p.test.calls.front();
    models::LoadOptions options;
    for (const auto& input : call.inputs) options.given_inputs.push_back(input.first);
    p.model = models::load_checkpoint(path, options);
    p.calls.emplace_back(&call, CallGraph{});
    return p;
  }
  for (const io::Call& call : p.test.calls) {
    try {
      p.calls.emplace_back(&call, graph_of(call));
      if (!p.calls.back().second.missing.empty()) p.not_supported.push_back(p.calls.back().second.missing);
    } catch (const NotSupported& e) {
      p.not_supported.emplace_back(e.what());
    } catch (const std::exception& e) {
      throw Error(fmt::format("{}: {}", path.string(), e.what()));
    }
  }
  std::sort(p.not_supported.begin(), p.not_supported.end());
  p.not_supported.erase(std::unique(p.not_supported.begin(), p.not_supported.end()), p.not_supported.end());
  return p;
}

int run(const Typed& t) {
  const std::vector<Target> targets = targets_of(t);
  const auto found = io::find_cases({t.paths.begin(), t.paths.end()});
  std::vector<Prepared> cases;  // all are read first: a broken file is told before an hour of runs, not after
  cases.reserve(found.size());
  for (const auto& path : found) cases.push_back(prepare(path));

  fmt::print("{:<8} {:<52} {:<9} {:<9} {}\n", "", "case", "backend", "isa", "error / tolerance");
  Counts counts;
  for (const Prepared& p : cases) {
    if (!p.test.numeric) {
      if (run_files(p, counts)) continue;
      ++counts.skipped;
      print_row("skipped", p.test.name, {}, "not generic: a property that a test of its own checks");
      continue;
    }
    if (!p.calls.empty())
      for (const Target& target : targets) run_on(p, target, counts);
    if (!p.not_supported.empty()) {
      ++counts.not_supported;
      print_row("-", p.test.name, {}, "not supported: " + join(p.not_supported, "; "));
    }
    std::fflush(stdout);
  }
  if (counts.skipped > 0)
    fmt::print("{} case{} skipped: no generic call\n", counts.skipped, counts.skipped == 1 ? "" : "s");
  fmt::print("{} passed, {} failed, {} not supported\n", counts.passed, counts.failed, counts.not_supported);
  return counts.failed > 0 || (t.complete && counts.not_supported > 0) ? 1 : 0;
}

}  // namespace

Command add_verify(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("verify",
                                     "Run cases of calls with expected results on every backend and ISA.\n"
                                     "Exit code 1 if any fails, or, with --complete, if any is not supported.");
  static Typed t;
  sub->add_option("paths", t.paths, "Case folders (case.json and .npy files), JSON cases, or folders of them")
      ->required()
      ->type_name("PATH");
  sub->add_option("--backend", t.backend, "all (default), reference, simd or tbb")->type_name("NAME");
  sub->add_option("--isa", t.isa, "all (default) or one, see `treadle backends`")->type_name("NAME");
  sub->add_flag("--complete", t.complete, "What is not supported counts as a failure");
  return {sub, [] { return run(t); }};
}

}  // namespace treadle::cli

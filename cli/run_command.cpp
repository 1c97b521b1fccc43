// `treadle run`: a checkpoint's model on given inputs.

#include "arguments.hpp"
#include "command.hpp"
#include "report.hpp"

#include <treadle/backends/error.hpp>
#include <treadle/backends/trace.hpp>
#include <treadle/io/npy.hpp>
#include <treadle/io/npz.hpp>
#include <treadle/models/architecture.hpp>
#include <treadle/models/checkpoint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace treadle::cli {

namespace fs = std::filesystem;

namespace {

struct Typed {
  std::string checkpoint, inputs, output, backend = "tbb", isa, trace;
  std::int64_t threads = 0;
  bool float64 = false;
};

/// A .npz file, or NAME.npy for every input in a folder, except what a case folder holds as results.
std::map<std::string, io::Tensor> read_inputs(const fs::path& folder) {
  std::error_code code;
  if (fs::is_regular_file(folder, code)) return io::load_npz(folder);
  if (!fs::is_directory(folder, code))
    throw Error(folder.string() + ": is no folder; inputs are NAME.npy files in one, or one .npz file");
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".npy" && entry.path().stem().string().rfind("expected_", 0) != 0)
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::map<std::string, io::Tensor> inputs;
  for (const fs::path& f : files) inputs.emplace(f.stem().string(), io::load_npy(f));
  if (inputs.empty()) throw Error(folder.string() + ": holds no .npy file; each input is a file NAME.npy");
  return inputs;
}

int run(const Typed& t) {
  const std::string backend = parse_backend(t.backend), isa = parse_isa(t.isa);
  if (!t.trace.empty()) {
    if (backend == "reference") throw Error("backend 'reference' has no steps to trace: use simd or tbb");
    require_writable(t.trace);
  }
  auto inputs = read_inputs(t.inputs);
  models::LoadOptions options;
  for (const auto& input : inputs) options.given_inputs.push_back(input.first);
  const models::LoadedModel loaded = models::load_checkpoint(t.checkpoint, options);
  std::optional<Trace> trace;
  if (!t.trace.empty()) trace.emplace().label(loaded.model_type);
  BoundModel model = loaded.bind({.backend = backend,
                                  .isa = isa,
                                  .threads = static_cast<int>(t.threads),
                                  .float64 = t.float64,
                                  .trace = trace ? &*trace : nullptr});
  const auto results = models::run_model(model, loaded, std::move(inputs));
  if (trace) replace_file(t.trace, trace->to_json());
  std::error_code code;
  fs::create_directories(t.output, code);
  if (code) throw Error(fmt::format("{}: cannot be made: {}", t.output, code.message()));
  for (const auto& [name, tensor] : results) {
    const fs::path file = fs::path(t.output) / (name + ".npy");
    io::save_npy(file, tensor.view());
    fmt::print("{} {} {}\n", file.string(), treadle::name(tensor.dtype), io::shape_text(tensor.shape));
  }
  return 0;
}

}  // namespace

Command add_run(CLI::App& app) {
  CLI::App* sub = app.add_subcommand(
      "run", "Run a published checkpoint (config.json, model.safetensors) on inputs from .npy or .npz files.");
  static Typed t;
  sub->add_option("--checkpoint", t.checkpoint, "Folder with config.json and model.safetensors or its shards")
      ->required()
      ->type_name("DIR");
  sub->add_option("--inputs", t.inputs,
                  "NAME.npy for each input in a folder, or a .npz file: input_ids, attention_mask, …")
      ->required()
      ->type_name("PATH");
  sub->add_option("--output", t.output, "Folder that gets NAME.npy for each output; made if it is not there")
      ->required()
      ->type_name("DIR");
  add_where_to_run(*sub, t.backend, t.isa, t.threads);
  sub->add_flag("--float64", t.float64, "Compute in float64; reference only");
  sub->add_option("--trace", t.trace, "Write what ran when, as Chrome trace events (Perfetto opens them)")
      ->type_name("FILE");
  std::string types;
  for (const models::Architecture& a : models::architectures())
    types += fmt::format("\n  {:<12} {}", a.model_type, a.summary);
  sub->footer("Values of model_type:" + types);
  return {sub, [] { return run(t); }};
}

}  // namespace treadle::cli

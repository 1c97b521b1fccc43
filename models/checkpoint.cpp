#include <treadle/models/checkpoint.hpp>

#include <treadle/backends/error.hpp>
#include <treadle/io/nearest.hpp>
#include <treadle/models/architecture.hpp>
#include <treadle/models/ports.hpp>
#include <treadle/passes/pipeline.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace treadle::models {

namespace fs = std::filesystem;

namespace {

/// The problems of a checkpoint, all in one sentence.
class Problems {
 public:
  void add(std::string what) {
    if (!known_.insert(what).second) return;  // of a tensor that holds several parameters
    if (++count_ <= shown) text_ += (text_.empty() ? "" : "; ") + std::move(what);
  }
  void raise(const fs::path& folder) const {
    if (count_ == 0) return;
    throw Error(folder.string() + ": the checkpoint does not fit its config.json: " + text_ +
                (count_ > shown ? "; and " + std::to_string(count_ - shown) + " more" : ""));
  }

 private:
  static constexpr int shown = 40;
  std::string text_;
  std::set<std::string> known_;
  int count_ = 0;
};

/// Finds tensors by published names and remembers which were used.
class Tensors {
 public:
  Tensors(const io::Safetensors& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  const io::StoredTensor* find(const std::string& published) {
    const io::StoredTensor* t = file_.find(published);
    if (t == nullptr && !prefix_.empty()) t = file_.find(prefix_ + published);
    if (t != nullptr) used_.insert(t->name);
    return t;
  }
  /// Names that nothing has asked for and no pattern of `unused` covers.
  std::vector<std::string> left(const std::vector<std::string>& unused) const {
    std::vector<std::string> names;
    for (const io::StoredTensor& t : file_.tensors()) {
      const bool known = std::any_of(unused.begin(), unused.end(), [&](const std::string& pattern) {
        return matches(t.name, pattern) || matches(t.name, prefix_ + pattern);
      });
      if (!used_.contains(t.name) && !known) names.push_back(t.name);
    }
    return names;
  }

 private:
  const io::Safetensors& file_;
  std::string prefix_;
  std::set<std::string, std::less<>> used_;
};

/// The shape that a parameter's tensor has in a file.
std::vector<std::int64_t> stored_shape(std::vector<std::int64_t> shape, const Published& p) {
  if (!shape.empty()) shape[0] *= p.parts;
  if (p.transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  return shape;
}

/// Where a parameter of shape `want` lies in a tensor of shape `have`; no data if it does not fit. Strides are those of
/// a dense tensor, turned around for a transposed matrix; trailing dims may be folded into one (a convolution's
/// weight), and a dim of 1 may stand before all others (Marian's biases).
TensorView place(const std::vector<std::int64_t>& want, const std::vector<std::int64_t>& have, const Published& p) {
  TensorView v = dense_view(nullptr, f32, want);
  const std::vector<std::int64_t> whole = stored_shape(want, p);
  const bool matrix = p.transposed && want.size() == 2;
  const bool folded = want.size() == 2 && have.size() > 2 && !matrix && p.parts == 1 && have[0] == want[0] &&
                      dense_view(nullptr, f32, have).size() == v.size();
  const bool row =
      have.size() == whole.size() + 1 && have[0] == 1 && std::equal(whole.begin(), whole.end(), have.begin() + 1);
  if (have != whole && !folded && !row) return {};
  if (matrix) {
    v.strides[0] = 1;
    v.strides[1] = whole[1];
  }
  return v;
}

/// Puts a parameter where the model finds it: the file's own memory where that holds floats at an address for them.
void set_parameter(Parameters& to, const std::string& name, const io::StoredTensor& t, TensorView v,
                   const Published& p) {
  const std::int64_t offset = v.rank == 0 ? 0 : p.part * v.shape[0] * v.strides[0];
  const auto* data = t.bytes.data();
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0;
  if (t.type == io::StoredType::f32 && aligned) {
    v.data = const_cast<float*>(reinterpret_cast<const float*>(data) + offset);
    to.set(name, v);
    return;
  }
  std::vector<float> all(t.bytes.size() / io::size_of(t.type)), values(static_cast<std::size_t>(v.size()));
  io::convert_to_f32(t, all.data());
  const std::vector<std::int64_t> shape(v.shape.begin(), v.shape.begin() + v.rank);
  if (v.contiguous()) {
    std::copy_n(all.begin() + offset, values.size(), values.begin());
  } else {
    for (std::int64_t i = 0; i < v.shape[0]; ++i)
      for (std::int64_t j = 0; j < v.shape[1]; ++j)
        values[static_cast<std::size_t>(i * v.shape[1] + j)] =
            all[static_cast<std::size_t>(offset + i * v.strides[0] + j * v.strides[1])];
  }
  to.own(name, shape, std::move(values));
}

/// Of graphs that may share parameters. `parameters` may hold some already, of another model of the same file.
Parameters read_parameters(const std::vector<GraphView>& graphs, const io::Safetensors& file, const Description& d,
                           const fs::path& folder, Parameters parameters = {}) {
  Tensors tensors(file, d.prefix);
  Problems problems;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> missing;
  std::vector<ParameterInfo> wanted;
  std::set<std::string> seen;
  for (const GraphView& g : graphs)
    for (ParameterInfo& p : parameter_names(g))
      if (seen.insert(p.name).second) wanted.push_back(std::move(p));
  for (const ParameterInfo& p : wanted) {
    const Published published = published_name(p.name, d.names);
    const io::StoredTensor* t = tensors.find(published.name);
    if (t == nullptr) {
      missing.emplace_back(published.name, stored_shape(p.shape, published));
      continue;
    }
    const TensorView v = place(p.shape, t->shape, published);
    if (v.rank != static_cast<std::int32_t>(p.shape.size())) {
      problems.add("'" + t->name + "' is " + io::shape_text(t->shape) + " instead of " +
                   io::shape_text(stored_shape(p.shape, published)));
      continue;
    }
    const TensorView known = parameters.find(p.name);
    if (known.data != nullptr && known.rank == v.rank && known.shape == v.shape) continue;
    set_parameter(parameters, p.name, *t, v, published);
  }
  const std::vector<std::string> left = tensors.left(d.unused);
  for (const auto& [name, shape] : missing) {
    const std::string close = io::nearest(name, left);
    problems.add("'" + name + "' " + io::shape_text(shape) + " is missing" +
                 (close.empty() ? "" : " (is it '" + close + "'?)"));
  }
  for (const std::string& name : left) problems.add("'" + name + "' is unexpected");
  problems.raise(folder);
  return parameters;
}

const Architecture& architecture_of(const Config& config) {
  const std::string type = config.text_or("model_type", "");
  std::string known;
  for (const Architecture& a : architectures()) {
    if (a.model_type == type) return a;
    known += (known.empty() ? "" : ", ") + std::string(a.model_type);
  }
  config.refuse("model_type", "the model types are " + known);
}

struct Opened {
  Config config;
  std::shared_ptr<const io::Safetensors> file;
  std::string model_type;
  Description description;
};

Opened open(const fs::path& folder, const LoadOptions& options) {
  std::error_code code;
  if (!fs::is_directory(folder, code))
    throw Error(folder.string() + ": is no folder; a checkpoint is a folder with config.json and model.safetensors");
  Opened o{Config::read(folder / "config.json"), nullptr, {}, {}};
  const Architecture& a = architecture_of(o.config);
  o.model_type = a.model_type;
  o.file = options.shared != nullptr ? options.shared->file
                                     : std::make_shared<const io::Safetensors>(io::Safetensors::open(folder));
  const auto has = [&](std::string_view prefix, std::string_view name) {
    return o.file->find(name) != nullptr || o.file->find(std::string(prefix) + std::string(name)) != nullptr;
  };
  o.description = a.describe({o.config, options, has});
  for (const Graph* g : {&o.description.graph, &o.description.encoder})
    if (g->error)
      throw Error((folder / "config.json").string() + ": gives no model: " + std::string(g->strings[g->error.leaf]) +
                  " has " + std::string(g->strings[g->error.got]) + " instead of " +
                  std::string(g->strings[g->error.expected]));
  return o;
}

io::Tensor default_of(const InputDefault& d, const io::Tensor& like) {
  io::Tensor t(i32, like.shape);
  const auto values = t.as<std::int32_t>();
  if (d.kind == InputDefault::Kind::ones) std::fill(values.begin(), values.end(), 1);
  if (d.kind == InputDefault::Kind::positions_after_padding && !like.shape.empty() && t.size() > 0) {
    const io::Tensor ids = io::convert(like, i64);
    const auto positions = position_ids_after_padding(ids.as<std::int64_t>(), like.shape.back(), d.padding_index);
    std::copy(positions.begin(), positions.end(), values.begin());
  }
  return t;
}

void check_known(const std::string& input, const std::vector<Port>& wanted) {
  std::string names;
  for (const Port& p : wanted) {
    if (p.name == input) return;
    names.append(names.empty() ? "" : ", ").append(p.name);
  }
  throw Error("the model has no input '" + input + "'; its inputs are " + names);
}

/// Ids that are looked up in a table lie in it: said here with the id, before anything runs.
void check_ids(GraphView g, const std::map<std::string, io::Tensor>& inputs) {
  for (const auto& [name, tensor] : inputs) {
    const std::int64_t rows = rows_by_ids(g, name);
    if (rows == 0 || tensor.dtype != i32) continue;
    for (const std::int32_t id : tensor.as<std::int32_t>())
      if (id < 0 || id >= rows)
        throw Error("the input '" + name + "' holds " + std::to_string(id) + "; ids are 0 to " +
                    std::to_string(rows - 1));
  }
}

/// eos_token_id of generation_config.json, or else of config.json: a number or a list.
std::vector<std::int32_t> stop_ids_of(const Config& config, const fs::path& folder) {
  const fs::path generation = folder / "generation_config.json";
  std::error_code code;
  const Config own = fs::exists(generation, code) ? Config::read(generation) : config;
  const Config& from = own.has("eos_token_id") ? own : config;
  std::vector<std::int32_t> ids;
  if (!from.has("eos_token_id")) return ids;
  const auto& found = from.json().at("eos_token_id");
  for (const auto& id : found.is_array() ? found : nlohmann::json::array({found})) {
    const bool whole = id.is_number_integer() && (!id.is_number_unsigned() || id.get<std::uint64_t>() <= 2147483647u);
    if (!whole || id.get<std::int64_t>() < -1 || id.get<std::int64_t>() > 2147483647)
      from.refuse("eos_token_id", "a token id, or a list of them");
    if (id.get<std::int64_t>() >= 0) ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

}  // namespace

LoadedModel load_checkpoint(const fs::path& folder, const LoadOptions& options) {
  Opened o = open(folder, options);
  LoadedModel m;
  m.model_type = o.model_type;
  const Graph& encoder = o.description.encoder;
  std::vector<GraphView> graphs{o.description.graph.view()};
  if (!encoder.nodes.empty()) graphs.push_back(encoder.view());
  m.parameters = read_parameters(graphs, *o.file, o.description, folder,
                                 options.shared != nullptr ? options.shared->parameters : Parameters());
  m.graph = optimise(o.description.graph);
  if (!encoder.nodes.empty()) m.encoder = optimise(encoder);
  m.start_id = static_cast<std::int32_t>(o.description.start_id);
  m.defaults = std::move(o.description.defaults);
  m.positions = o.description.positions;
  m.window = o.description.window;
  m.stop_ids = stop_ids_of(o.config, folder);
  m.least = std::move(o.description.least);
  m.file = std::move(o.file);
  return m;
}

LoadedParameters load_parameters(GraphView graph, const fs::path& folder) {
  std::vector<std::string> given;
  for (const Port& p : ports(graph, op::input)) given.push_back(p.name);
  Opened o = open(folder, {.given_inputs = std::move(given)});
  LoadedParameters r;
  r.parameters = read_parameters({graph}, *o.file, o.description, folder);
  r.file = std::move(o.file);
  return r;
}

std::map<std::string, io::Tensor> run_model(BoundModel& model, const LoadedModel& loaded,
                                            std::map<std::string, io::Tensor> inputs) {
  const GraphView g = loaded.graph.view();
  const std::vector<Port> wanted = ports(g, op::input);
  for (const auto& input : inputs) check_known(input.first, wanted);
  for (const Port& p : wanted) {
    if (inputs.contains(p.name)) continue;
    const auto d = std::find_if(loaded.defaults.begin(), loaded.defaults.end(),
                                [&](const InputDefault& x) { return x.input == p.name; });
    const auto like = d == loaded.defaults.end() ? inputs.end() : inputs.find(d->like);
    if (like == inputs.end()) throw Error("the input '" + p.name + "' is missing");
    inputs.emplace(p.name, default_of(*d, like->second));
  }

  std::map<std::string, std::int64_t> sizes;
  for (const Port& p : wanted) {
    io::Tensor& t = inputs.at(p.name);
    const DType dtype = g.info({p.node, 0}).dtype;
    const bool whole = t.dtype == i32 || t.dtype == i64 || t.dtype == boolean;
    if (dtype == i32 && !whole)
      throw Error("the input '" + p.name + "' is " + std::string(name(t.dtype)) + "; it holds whole numbers");
    t = io::convert(t, dtype);
    const auto shape = g.shape({p.node, 0});
    if (shape.size() != t.shape.size())
      throw Error("the input '" + p.name + "' is " + io::shape_text(t.shape) + "; it has " +
                  std::to_string(shape.size()) + " dims");
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::string_view symbol = symbol_of(g, shape[i]);
      if (symbol.empty()) continue;
      const auto [at, fresh] = sizes.emplace(symbol, t.shape[i]);
      if (!fresh && at->second != t.shape[i])
        throw Error("the input '" + p.name + "' is " + io::shape_text(t.shape) + "; '" + at->first + "' is " +
                    std::to_string(at->second) + " in another input");
    }
  }
  for (const NamedSize& least : loaded.least) {
    const auto given = sizes.find(std::string(least.name));
    if (given != sizes.end() && given->second < least.value)
      throw Error("'" + given->first + "' is " + std::to_string(given->second) + "; " + loaded.model_type +
                  " needs at least " + std::to_string(least.value));
  }
  check_ids(g, inputs);
  std::vector<NamedSize> dims;
  for (const auto& [name, size] : sizes) dims.push_back({name, size});
  model.bind_dims(dims);

  std::map<std::string, io::Tensor> results;
  for (const Port& p : ports(g, op::output)) {
    const TensorView spec = model.output_spec(p.name);
    results.emplace(p.name, io::Tensor(spec.dtype, {spec.shape.begin(), spec.shape.begin() + spec.rank}));
  }
  std::vector<NamedTensor> in, out;
  for (auto& [name, tensor] : inputs) in.push_back({name, tensor.view()});
  for (auto& [name, tensor] : results) out.push_back({name, tensor.view()});
  model.run(in, out);
  return results;
}

}  // namespace treadle::models

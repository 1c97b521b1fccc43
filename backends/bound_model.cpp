#include <treadle/backends/backend.hpp>
#include <treadle/backends/bound_model.hpp>
#include <treadle/backends/executor.hpp>
#include <treadle/backends/inlined.hpp>
#include <treadle/backends/names.hpp>
#include <treadle/backends/reference/reference.hpp>
#include <treadle/backends/sizes.hpp>
#include <treadle/graph/copy.hpp>
#include <treadle/graph/scalar/program.hpp>

#include <algorithm>
#include <cstdio>
#include <type_traits>

namespace treadle {
namespace {

std::span<const std::int64_t> shape_of(const TensorView& t) {
  return {t.shape.data(), static_cast<std::size_t>(t.rank)};
}

/// An input or output as the model declares it.
struct Port {
  std::string name;
  TensorView spec;
};

std::string port_names(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& p : ports) text += (text.empty() ? "" : ", ") + p.name;
  return text.empty() ? "none" : text;
}

const Port& find_port(const std::vector<Port>& ports, std::string_view name, const char* what) {
  for (const Port& p : ports)
    if (p.name == name) return p;
  throw Error("the model has no " + std::string(what) + " '" + std::string(name) + "'; it has " + port_names(ports));
}

const kernel::Table& choose_table(std::string_view isa) {
  if (isa.empty()) return kernel::best_table();
  if (const kernel::Table* t = kernel::find_table(std::string(isa).c_str())) return *t;
  std::string there;
  for (int i = 0; i < kernel::isa_count; ++i) {
    const kernel::IsaInfo& info = kernel::isa_list()[i];
    if (info.compiled && info.supported) there += (there.empty() ? "" : ", ") + std::string(info.name);
  }
  throw Error("ISA '" + std::string(isa) + "' is unknown or not supported here; there are " + there);
}

/// Runs a graph by the reference formulas, in T.
template <class T>
struct ReferenceRun {
  DimValues dims;
  reference::Tensors<T> states;

  void run(GraphView g, const Parameters& parameters, const std::vector<Port>& inputs,
           std::span<const TensorView> given, const std::vector<Port>& outputs, std::span<const TensorView> wanted) {
    reference::Tensors<T> in;
    for (std::size_t i = 0; i < inputs.size(); ++i) in[inputs[i].name] = reference::from_view<T>(given[i]);
    const auto out = reference::evaluate<T>(g, dims, in, parameters, &states);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (wanted[i].data != nullptr) reference::to_view(out.at(outputs[i].name), wanted[i]);
  }
};

}  // namespace

struct BoundModel::Implementation {
  Graph graph;
  const BackendInfo* backend = nullptr;
  const kernel::Table* kernels = nullptr;
  std::unique_ptr<Threads> threads;
  bool float64 = false, inlined = true;
  Trace* trace = nullptr;

  plan::Constants constants;
  std::vector<plan::StateStorage> states;
  std::unique_ptr<plan::Executor> executor;
  ReferenceRun<float> reference32;
  ReferenceRun<double> reference64;

  bool bound = false;
  DimValues bound_sizes;
  std::vector<Port> inputs, outputs;
  std::vector<TensorView> given, wanted;  // of a run; here so that runs allocate nothing
  mutable std::vector<StepInfo> infos;
  mutable std::vector<BufferInfo> buffers;

  void check_parameters() const;
  void find_ports(const DimValues& sizes);
  void bind_reference(const DimValues& sizes);
  void choose_scores(plan::Plan& p) const;
  TensorView check(const NamedTensor& t, const Port& port, const char* what) const;
  void describe_steps() const;
  void describe_buffers() const;

  TensorView state_view(std::size_t i) {
    if (backend->has_isas) return states[i].view;
    TensorView v = states[i].view;
    v.dtype = float64 ? f64 : f32;
    v.data = float64 ? static_cast<void*>(reference64.states.at(states[i].name).data.data())
                     : static_cast<void*>(reference32.states.at(states[i].name).data.data());
    return v;
  }
};

BoundModel::BoundModel(GraphView graph, const Parameters& parameters, BindOptions options)
    : implementation_(std::make_unique<Implementation>()) {
  Implementation& m = *implementation_;
  m.backend = &find_backend(options.backend);
  if (options.float64 && !m.backend->float64)
    throw Error("backend '" + std::string(options.backend) +
                "' computes in float32; float64 is there on backend 'reference'");
  constexpr int most_threads = 1024;
  if (options.threads < 0 || options.threads > most_threads)
    throw Error(std::to_string(options.threads) + " threads; 0 (all) to " + std::to_string(most_threads) + " is right");
  m.float64 = options.float64;
  m.inlined = options.inlined;
  m.trace = options.trace;
  m.graph = copy_of(graph);
  m.constants.parameters = parameters;
  if (m.backend->has_isas) {
    m.kernels = &choose_table(options.isa);
    if (m.backend->threads) {
      m.threads = make_tbb_threads(options.threads);
    } else {
      m.threads = std::make_unique<OneThread>();
    }
  } else if (!options.isa.empty()) {
    throw Error("backend 'reference' has no ISAs; leave isa empty");
  }
  m.check_parameters();
  if (dim_names(m.graph).empty()) bind_dims(std::span<const NamedSize>{});
}
BoundModel::BoundModel(BoundModel&&) noexcept = default;
BoundModel& BoundModel::operator=(BoundModel&&) noexcept = default;
BoundModel::~BoundModel() = default;

/// Parameters of fixed shape are checked at once; others when the lengths are known.
void BoundModel::Implementation::check_parameters() const {
  const GraphView g = graph;
  for (std::int32_t n = 0; n < g.size(); ++n)
    if (g.nodes[n].op == op::parameter)
      for (const Dim d : g.shape({n, 0}))
        if (!g.dims.constant(d)) return;
  for (const ParameterInfo& p : parameter_names(g)) {
    const TensorView t = constants.parameters.find(p.name);
    if (!t && std::find(p.shape.begin(), p.shape.end(), 0) == p.shape.end())
      throw Error("parameter '" + p.name + "' is missing; the model wants f32 " + shape_text(p.shape));
    if (t && !std::equal(p.shape.begin(), p.shape.end(), t.shape.begin(), t.shape.begin() + t.rank))
      throw Error("parameter '" + p.name + "' is " + shape_text(shape_of(t)) + "; the model wants " +
                  shape_text(p.shape));
  }
}

void BoundModel::Implementation::find_ports(const DimValues& sizes) {
  const plan::Sizes numbers(graph, sizes);
  const GraphView g = graph;
  inputs.clear();
  outputs.clear();
  for (std::int32_t n = 0; n < g.size(); ++n) {
    const op o = g.nodes[n].op;
    if (o != op::input && o != op::output) continue;
    const Value v = o == op::input ? Value{n, 0} : g.inputs(n)[0];
    const std::vector<std::int64_t> shape = numbers(g.shape(v));
    if (shape.size() > max_rank)
      throw Error(treadle::describe(g, n) + ": rank " + std::to_string(shape.size()) + "; at most " +
                  std::to_string(max_rank) + " is possible");
    std::int64_t bytes = static_cast<std::int64_t>(size_of(g.info(v).dtype));
    for (const std::int64_t d : shape) bytes = plan::checked_multiply(bytes, std::max<std::int64_t>(d, 1));
    if (static_cast<std::size_t>(bytes) > plan::available_memory())
      throw Error(treadle::describe(g, n) + " would be " + shape_text(shape) +
                  ", more than the memory that is available; use shorter lengths");
    (o == op::input ? inputs : outputs)
        .push_back({std::string(g.leaf(n)), dense_view(nullptr, g.info(v).dtype, shape)});
  }
  given.assign(inputs.size(), {});
  wanted.assign(outputs.size(), {});
}

void BoundModel::Implementation::bind_reference(const DimValues& sizes) {
  const plan::Sizes numbers(graph, sizes);
  const GraphView g = graph;
  const auto keep = [&](auto& run) {
    using T = typename std::remove_reference_t<decltype(run.states)>::mapped_type;
    run.dims = sizes;
    for (const plan::StateStorage& s : states) {
      const std::vector<std::int64_t> shape(s.view.shape.begin(), s.view.shape.begin() + s.view.rank);
      const auto old = run.states.find(s.name);
      if (old == run.states.end() || old->second.shape != shape) {
        T array;
        array.shape = shape;
        array.data.resize(static_cast<std::size_t>(s.view.size()));
        run.states.insert_or_assign(s.name, std::move(array));
      }
    }
  };
  states.clear();
  for (std::int32_t n = 0; n < g.size(); ++n)
    if (g.nodes[n].op == op::state)
      states.push_back(
          {full_name(g, n), dense_view(nullptr, g.info({n, 0}).dtype, numbers(g.shape({n, 0}))), nullptr, 0});
  if (float64) {
    keep(reference64);
  } else {
    keep(reference32);
  }
}

/// Score functions that were compiled for this ISA; every other runs through the tile evaluator.
void BoundModel::Implementation::choose_scores(plan::Plan& p) const {
  for (plan::Step& s : p.steps) {
    kernel::Attention* a = plan::scores_of(s.call);
    if (a == nullptr || s.score < 0) continue;
    const int root = p.scores[static_cast<std::size_t>(s.score)].root;
    a->inlined = kernel::find_inlined(kernels->isa, graph.scalars, root);
  }
}

void BoundModel::bind_dims(std::span<const NamedSize> sizes) {
  Implementation& m = *implementation_;
  DimValues values;
  for (const NamedSize& s : sizes)
    if (!values.emplace(std::string(s.name), s.value).second)
      throw Error("dim '" + std::string(s.name) + "' is given twice");
  if (m.bound && values == m.bound_sizes) return;  // planned for these already
  m.bound = false;
  m.executor.reset();
  m.find_ports(values);
  if (m.backend->has_isas) {
    plan::Plan p = plan::make_plan(m.graph, values, *m.kernels, m.backend->name, m.constants, m.states);
    if (m.inlined) m.choose_scores(p);
    m.executor = std::make_unique<plan::Executor>(std::move(p), m.graph, *m.kernels, *m.threads, m.trace);
  } else {
    m.bind_reference(values);
  }
  m.bound_sizes = std::move(values);
  m.bound = true;
}

TensorView BoundModel::Implementation::check(const NamedTensor& t, const Port& port, const char* what) const {
  const bool same_type =
      t.tensor.dtype == port.spec.dtype || (float64 && t.tensor.dtype == f64 && port.spec.dtype == f32);
  if (!same_type)
    throw Error(std::string(what) + " '" + port.name + "' is " + std::string(name(t.tensor.dtype)) +
                "; the model wants " + std::string(name(port.spec.dtype)));
  if (!std::equal(t.tensor.shape.begin(), t.tensor.shape.begin() + t.tensor.rank, port.spec.shape.begin(),
                  port.spec.shape.begin() + port.spec.rank))
    throw Error(std::string(what) + " '" + port.name + "' has shape " + shape_text(shape_of(t.tensor)) +
                "; the model wants " + shape_text(shape_of(port.spec)));
  if (t.tensor.data == nullptr && port.spec.size() != 0)
    throw Error(std::string(what) + " '" + port.name + "' has no data");
  return t.tensor;
}

void BoundModel::run(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs) {
  Implementation& m = *implementation_;
  if (!m.bound) throw Error("the model's dims have no values yet; call bind_dims first");
  for (TensorView& t : m.given) t = {};
  for (TensorView& t : m.wanted) t = {};
  std::size_t found = 0;
  const auto place = [&](const NamedTensor& t, const std::vector<Port>& ports, std::vector<TensorView>& to,
                         const char* what) {
    const Port& port = find_port(ports, t.name, what);
    TensorView& slot = to[static_cast<std::size_t>(&port - ports.data())];
    if (slot.rank != 0 || slot.data != nullptr) throw Error(std::string(what) + " '" + port.name + "' is given twice");
    slot = m.check(t, port, what);
    ++found;
  };
  for (const NamedTensor& t : inputs) place(t, m.inputs, m.given, "input");
  if (found != m.inputs.size()) {
    for (const Port& p : m.inputs)
      if (std::none_of(inputs.begin(), inputs.end(), [&](const NamedTensor& t) { return t.name == p.name; }))
        throw Error("input '" + p.name + "' is missing; the model wants " + std::string(name(p.spec.dtype)) + " " +
                    shape_text(shape_of(p.spec)));
  }
  for (const NamedTensor& t : outputs) place(t, m.outputs, m.wanted, "output");
  if (m.executor) return m.executor->run(m.given, m.wanted);
  if (m.float64) return m.reference64.run(m.graph, m.constants.parameters, m.inputs, m.given, m.outputs, m.wanted);
  m.reference32.run(m.graph, m.constants.parameters, m.inputs, m.given, m.outputs, m.wanted);
}

TensorView BoundModel::state(std::string_view name) {
  Implementation& m = *implementation_;
  std::string names;
  for (std::size_t i = 0; i < m.states.size(); ++i) {
    if (m.states[i].name == name) return m.state_view(i);
    names += (names.empty() ? "" : ", ") + m.states[i].name;
  }
  throw Error("the model has no state '" + std::string(name) + "'; it has " + (names.empty() ? "none" : names) +
              (m.bound ? "" : " before bind_dims"));
}

void BoundModel::reset_states() {
  Implementation& m = *implementation_;
  for (std::size_t i = 0; i < m.states.size(); ++i) {
    const TensorView v = m.state_view(i);
    std::fill_n(v.as<std::byte>(), static_cast<std::size_t>(v.size()) * size_of(v.dtype), std::byte{0});
  }
}

TensorView BoundModel::input_spec(std::string_view name) const {
  return find_port(implementation_->inputs, name, "input").spec;
}
TensorView BoundModel::output_spec(std::string_view name) const {
  return find_port(implementation_->outputs, name, "output").spec;
}

std::size_t BoundModel::planned_bytes() const {
  const auto& e = implementation_->executor;
  return e ? e->plan().arena_bytes + e->workspace_bytes() : 0;
}
std::size_t BoundModel::arena_bytes() const {
  return implementation_->executor ? implementation_->executor->plan().arena_bytes : 0;
}
std::size_t BoundModel::arena_bytes_without_reuse() const {
  return implementation_->executor ? implementation_->executor->plan().separate_bytes : 0;
}
std::size_t BoundModel::workspace_bytes() const {
  return implementation_->executor ? implementation_->executor->workspace_bytes() : 0;
}
std::size_t BoundModel::staging_bytes() const {
  return implementation_->executor ? implementation_->executor->staging_bytes() : 0;
}
std::string_view BoundModel::backend() const { return implementation_->backend->name; }
std::string_view BoundModel::isa() const {
  return implementation_->kernels != nullptr ? implementation_->kernels->isa : "";
}
int BoundModel::threads() const { return implementation_->threads ? implementation_->threads->slots() : 1; }

void BoundModel::Implementation::describe_steps() const {
  infos.clear();
  if (!executor) return;
  const plan::Plan& p = executor->plan();
  for (const plan::Step& s : p.steps) {
    StepInfo info;
    info.node = s.node;
    info.op = graph.nodes[static_cast<std::size_t>(s.node)].op;
    info.name = s.name;
    info.kernel = std::visit([](const auto& c) { return std::string(c.kernel->name); }, s.call);
    info.backend = backend->name;
    info.isa = kernels->isa;
    info.useful_flops = info.executed_flops = s.flops;
    info.bytes = s.bytes;
    info.work_items = s.work.items;
    info.at_bind = s.at_bind;
    if (s.at_bind) info.useful_flops = info.executed_flops = info.bytes = 0;
    if (const auto* e = std::get_if<plan::Call<kernel::ExpertLinear>>(&s.call))
      info.expert_rows = *e->arguments.computed;
    const kernel::Attention* a = plan::scores_of(s.call);
    if (a != nullptr && s.mask >= 0 && !s.at_bind) {
      const std::int64_t strip = s.work.tile_queries, block = s.work.tile_keys;
      info.tile_queries = strip;
      info.tile_keys = block;
      info.form = "masked tiles of " + std::to_string(strip) + " x " + std::to_string(block);
      info.upper_bound = !executor->countable(s);
      if (!info.upper_bound) {
        const mask::Counts c = executor->count(s, strip, block);
        const double per_pair = 2.0 * static_cast<double>(a->q.shape[3] + a->v.shape[3]);
        info.useful_flops = per_pair * static_cast<double>(c.useful);
        info.executed_flops = per_pair * static_cast<double>(c.executed);
      }
    } else if (a != nullptr) {
      info.form = "all keys";
    }
    if (a != nullptr && a->score != nullptr) {
      const bool wide = a->score->wide;  // integers of 64 bits are never inlined
      info.form += a->inlined == nullptr ? "; score in tiles"
                   : wide                ? "; score in tiles (64-bit integers)"
                                         : "; score inlined";
    }
    if (const auto* l = std::get_if<plan::Call<kernel::LinearAttention>>(&s.call)) {
      const bool quadratic = l->kernel->run == kernels->linear_attention_quadratic.run,
                 recurrent = l->kernel->run == kernels->linear_attention_recurrent.run;
      info.form = quadratic             ? "quadratic, without a state"
                  : recurrent           ? "token by token, with a running state"
                  : l->arguments.causal ? "chunks with a running state"
                                        : "one state over all keys";
    }
    if (const auto* r = std::get_if<plan::Call<kernel::RecurrentAttention>>(&s.call))
      info.form = r->kernel->run == kernels->recurrent_attention_recurrent.run ? "token by token, with a running state"
                                                                               : "chunks with a running state";
    for (const plan::Operand& o : s.operands) {
      const plan::Buffer& b = p.buffers[static_cast<std::size_t>(o.view.buffer)];
      if (!o.written || b.place != plan::Place::arena) continue;
      info.in_arena = true;
      info.arena_offset = b.offset;
      info.arena_bytes = b.bytes;
    }
    infos.push_back(std::move(info));
  }
}

std::span<const StepInfo> BoundModel::steps() const {
  implementation_->describe_steps();
  return implementation_->infos;
}

void BoundModel::Implementation::describe_buffers() const {
  buffers.clear();
  if (!executor) return;
  const plan::Plan& p = executor->plan();
  std::vector<int> at(p.buffers.size(), -1);
  for (const plan::Step& s : p.steps) {
    for (const plan::Operand& o : s.operands) {
      const auto i = static_cast<std::size_t>(o.view.buffer);
      const plan::Buffer& b = p.buffers[i];
      if (!o.written || b.place != plan::Place::arena || at[i] >= 0) continue;
      at[i] = static_cast<int>(buffers.size());
      const std::string op(name(graph.nodes[static_cast<std::size_t>(s.node)].op));
      buffers.push_back({s.name.empty() ? op : op + " " + s.name, s.node, b.offset, b.bytes,
                         static_cast<std::size_t>(b.first), static_cast<std::size_t>(b.last)});
    }
  }
}

std::span<const BufferInfo> BoundModel::buffers() const {
  implementation_->describe_buffers();
  return implementation_->buffers;
}

std::string BoundModel::describe() const {
  std::string text;
  int i = 0;
  for (const StepInfo& s : steps()) {
    char line[64];
    std::snprintf(line, sizeof(line), "%4d  ", i++);
    text += line;
    text += std::string(name(s.op)) + (s.name.empty() ? "" : " '" + s.name + "'") + ": " + s.kernel + ", " +
            std::string(s.backend) + " " + std::string(s.isa);
    if (const auto score = s.form.find("score "); score != std::string::npos) text += ", " + s.form.substr(score);
    if (s.at_bind) {
      text += ", once at bind";
    } else if (s.in_arena) {
      std::snprintf(line, sizeof(line), ", arena +%zu, %zu bytes", s.arena_offset, s.arena_bytes);
      text += line;
    } else {
      text += ", outside the arena";
    }
    text += "\n";
  }
  if (!implementation_->executor) text = "every node: backend reference\n";
  return text;
}

}  // namespace treadle

#include <treadle/backends/error.hpp>
#include <treadle/backends/executor.hpp>
#include <treadle/backends/memory_plan.hpp>
#include <treadle/backends/names.hpp>
#include <treadle/backends/subnormals.hpp>
#include <treadle/graph/scalar/check.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace treadle::plan {
namespace {

/// Steps that cost less than this (flops + bytes) run on the calling thread: waking others takes longer.
constexpr double worth_threads = 60'000;

/// Stands in for a table that only a run will give: every element reads 0.
alignas(64) std::int64_t zero_element = 0;

TensorView zeros_like(const Buffer& b, const View& v) {
  TensorView t = resolve(b, v);
  t.data = &zero_element;
  t.strides.fill(0);
  return t;
}

struct Extent {
  const std::byte *first = nullptr, *last = nullptr;
};
Extent extent(const TensorView& t) {
  std::int64_t low = 0, high = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.rank); ++i) {
    if (t.shape[i] == 0) return {};
    const std::int64_t reach = (t.shape[i] - 1) * t.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const auto size = static_cast<std::int64_t>(size_of(t.dtype));
  return {t.as<const std::byte>() + low * size, t.as<const std::byte>() + (high + 1) * size};
}
bool overlaps(const TensorView& a, const TensorView& b) {
  const Extent x = extent(a), y = extent(b);
  return x.first < y.last && y.first < x.last;
}

kernel::Work plan_work(const AnyCall& call) {
  return std::visit([](const auto& c) { return c.kernel->plan(c.arguments); }, call);
}

const char* bad_id(op o) {
  if (o == op::gather) return "an id lies outside the axis";
  if (o == op::append) return "a position lies outside the state";
  if (o == op::cross_entropy) return "an id is neither a class nor ignore_index";
  return "an id lies outside the table";
}

}  // namespace

Executor::Executor(Plan plan, GraphView graph, const kernel::Table& kernels, Threads& threads, Trace* trace)
    : plan_(std::move(plan)), graph_(graph), kernels_(kernels), threads_(threads), trace_(trace) {
  arena_ = allocate(plan_.arena_bytes);
  for (Buffer& b : plan_.buffers)
    if (b.place == Place::arena) b.view.data = static_cast<std::byte*>(arena_.get()) + b.offset;
  for (std::size_t i = 0; i < plan_.inputs.size() + plan_.outputs.size(); ++i) {
    Buffer& b = port(i);
    staging_.push_back(allocate(b.bytes));
    staging_bytes_ += align_up(b.bytes);
    b.view.data = staging_.back().get();
  }
  staged_.assign(staging_.size(), 0);
  copies_.assign(staging_.size(), Call<kernel::Copy>{&kernels_.copy, {}});

  written_.assign(plan_.buffers.size(), 0);
  for (const Step& s : plan_.steps)
    for (const Operand& o : s.operands)
      if (o.written) written_[static_cast<std::size_t>(o.view.buffer)] = 1;
  make_masks();
  workspace_stride_ = 0;
  patch(true);
  std::size_t most = 0;
  for (const Step& s : plan_.steps) most = std::max(most, s.work.workspace_bytes);
  // A staged copy is dense and small in workspace, but ask.
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    copies_[i].arguments = {port(i).view, port(i).view};
    most = std::max(most, copies_[i].kernel->plan(copies_[i].arguments).workspace_bytes);
  }
  if (trace_ != nullptr) most = std::max<std::size_t>(most, 1);  // its place tells which thread worked
  workspace_stride_ = align_up(most);
  if (workspace_bytes() > available_memory())
    throw Error("the kernels need " + std::to_string(workspace_bytes() >> 20) +
                " MiB of workspace, more than is available; use shorter lengths");
  workspace_ = allocate(workspace_bytes());
  if (trace_ != nullptr) announce_steps();
  run_steps(true);
}

void Executor::run_steps(bool at_bind) {
  std::size_t i = 0;
  for (const Step& s : plan_.steps) {
    const std::size_t step = i++;
    if (s.at_bind != at_bind) continue;
    bind_computed(s);
    std::visit([&](const auto& c) { execute(c, s.work, s.flops + s.bytes, step); }, s.call);
  }
}

void Executor::announce_steps() {
  std::vector<TraceStep> steps;
  for (const Step& s : plan_.steps)
    steps.push_back({s.name, std::string(name(graph_.nodes[static_cast<std::size_t>(s.node)].op)),
                     std::visit([](const auto& c) { return std::string(c.kernel->name); }, s.call), s.flops, s.bytes});
  steps.push_back({"", "copy of an input or output", kernels_.copy.name, 0, 0});
  first_traced_ = trace_->add_steps(std::move(steps), threads_.slots());
}

template <class Use>
bool Executor::bind_tables(const Use& use, std::vector<scalar::Table>& tables, bool dummy) {
  bool callers = false;
  tables.resize(use.tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const View& v = use.tables[i].view;
    const Buffer& b = buffer(v.buffer);
    callers = callers || b.callers();
    const bool later = b.callers() || written_[static_cast<std::size_t>(v.buffer)] != 0;
    tables[i] = {use.tables[i].name, dummy && later ? zeros_like(b, v) : resolve(b, v)};
  }
  return callers;
}

void Executor::make_masks() {
  for (const MaskUse& use : plan_.masks) {
    BoundMask& m = masks_.emplace_back();
    m.callers = bind_tables(use, m.tables, true);
    m.computed = has_computed_tables(use);
    const auto passes = [&](const View& v) {
      return v.buffer >= 0 && written_[static_cast<std::size_t>(v.buffer)] != 0 &&
             buffer(v.buffer).place == Place::arena;
    };
    m.passing = passes(use.dense) ||
                std::any_of(use.tables.begin(), use.tables.end(), [&](const Lookup& l) { return passes(l.view); });
    TensorView dense;
    if (use.dense.buffer >= 0) {
      const Buffer& b = buffer(use.dense.buffer);
      m.callers = m.callers || b.callers();
      dense = resolve(b, use.dense);
    }
    try {
      if (use.root >= 0) scalar::check_lookups(graph_.scalars, use.root, use.extents, m.tables);
      m.tiles = std::make_unique<mask::Tiles>(graph_.scalars, use.root, use.extents, m.tables, dense);
    } catch (const std::invalid_argument& e) {
      throw Error(describe(graph_, use.node) + ": " + e.what());
    }
  }
  for (const ScoreUse& use : plan_.scores) {
    BoundScore& s = scores_.emplace_back();
    s.callers = bind_tables(use, s.tables, true);
    s.computed = has_computed_tables(use);
    try {
      scalar::check_lookups(graph_.scalars, use.root, use.extents, s.tables);
      s.program =
          std::make_unique<scalar::TileProgram>(scalar::compile(graph_.scalars, use.root, use.extents, s.tables));
    } catch (const std::invalid_argument& e) {
      throw Error(describe(graph_, use.node) + ": " + e.what());
    }
  }
  for (Step& s : plan_.steps) {
    if (kernel::Attention* a = scores_of(s.call)) {
      if (s.mask >= 0) a->mask = masks_[static_cast<std::size_t>(s.mask)].tiles.get();
      if (s.score >= 0) a->score = scores_[static_cast<std::size_t>(s.score)].program.get();
    }
    if (auto* m = std::get_if<Call<kernel::Map>>(&s.call))
      m->arguments.function = scores_[static_cast<std::size_t>(s.score)].program.get();
    if (auto* m = std::get_if<Call<kernel::MaskValues>>(&s.call))
      m->arguments.mask = masks_[static_cast<std::size_t>(s.mask)].tiles.get();
  }
}

void Executor::rebind_mask(std::size_t i) {
  const MaskUse& use = plan_.masks[i];
  bind_tables(use, masks_[i].tables, false);
  const TensorView dense = use.dense.buffer >= 0 ? resolve(buffer(use.dense.buffer), use.dense) : TensorView{};
  masks_[i].tiles->rebind(use.extents, masks_[i].tables, dense);
}

void Executor::rebind_score(std::size_t i) {
  bind_tables(plan_.scores[i], scores_[i].tables, false);
  scalar::rebind(*scores_[i].program, plan_.scores[i].extents, scores_[i].tables);
}

void Executor::rebind_masks() {
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    masks_[i].ready = false;
    if (masks_[i].callers && !masks_[i].computed) rebind_mask(i);
  }
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    scores_[i].ready = false;
    if (scores_[i].callers && !scores_[i].computed) rebind_score(i);
  }
}

void Executor::bind_computed(const Step& s) {
  const auto ready = [](auto& list, int which) {
    if (which < 0) return true;
    auto& bound = list[static_cast<std::size_t>(which)];
    return !bound.computed || std::exchange(bound.ready, true);
  };
  if (!ready(masks_, s.mask)) rebind_mask(static_cast<std::size_t>(s.mask));
  if (!ready(scores_, s.score)) rebind_score(static_cast<std::size_t>(s.score));
}

bool Executor::patch(bool all) {
  bool fits = true;
  for (Step& s : plan_.steps) {
    if (!all && !s.patched) continue;
    for (Operand& o : s.operands)
      if (all || buffer(o.view.buffer).callers()) *o.tensor = resolve(buffer(o.view.buffer), o.view);
    s.work = plan_work(s.call);
    fits = fits && s.work.workspace_bytes <= workspace_stride_;
  }
  return fits;
}

void Executor::choose_places(std::span<const TensorView> inputs, std::span<const TensorView> outputs, bool stage_all) {
  for (std::size_t i = 0; i < staging_.size(); ++i) {
    const bool is_input = i < inputs.size();
    const TensorView& given = is_input ? inputs[i] : outputs[i - inputs.size()];
    Buffer& b = port(i);
    bool stage = stage_all || given.data == nullptr || !b.fulfils(given);
    if (!is_input && !stage) {
      // An output is written while inputs are still read, so it may not lie in one.
      for (const TensorView& x : inputs) stage = stage || overlaps(given, x);
      for (std::size_t o = 0; o < outputs.size(); ++o)
        stage = stage || (o != i - inputs.size() && outputs[o].data != nullptr && overlaps(given, outputs[o]));
    }
    TensorView dense = dense_view(staging_[i].get(), b.view.dtype,
                                  std::span(b.view.shape.data(), static_cast<std::size_t>(b.view.rank)));
    staged_[i] = stage && given.data != nullptr ? 1 : 0;
    if (staged_[i] != 0) {
      copies_[i].arguments.from = is_input ? given : dense;
      copies_[i].arguments.to = is_input ? dense : given;
    }
    b.view = stage ? dense : given;
  }
}

template <class Arguments>
void Executor::execute(const Call<Arguments>& call, const kernel::Work& work, double cost, std::size_t step) {
  if (work.items == 0) return;
  Task task;
  task.items = work.items;
  task.call = [](const void* context, std::size_t first, std::size_t last, void* workspace) {
    const FlushSubnormals guard;  // in whatever thread this is
    const auto& c = *static_cast<const Call<Arguments>*>(context);
    c.kernel->run(c.arguments, first, last, workspace);
  };
  task.context = &call;
  task.workspace = static_cast<std::byte*>(workspace_.get());
  task.stride = workspace_stride_;
  const bool alone = work.items == 1 || cost < worth_threads;
  if (trace_ != nullptr && trace_->recording()) return traced(task, alone, step);
  if (alone) return task.call(task.context, 0, task.items, task.workspace);
  threads_.run(task);
}

void Executor::traced(const Task& task, bool alone, std::size_t step) {
  struct Pieces {
    const Task& task;
    Trace& trace;
    std::int32_t step;
  };
  const Pieces pieces{task, *trace_, first_traced_ + static_cast<std::int32_t>(step)};
  Task watched = task;
  watched.context = &pieces;
  watched.call = [](const void* context, std::size_t first, std::size_t last, void* workspace) {
    const auto& p = *static_cast<const Pieces*>(context);
    const HardwareCounts before = p.trace.counts();
    const std::int64_t begin = p.trace.now();
    p.task.call(p.task.context, first, last, workspace);
    const auto thread = static_cast<std::size_t>(static_cast<std::byte*>(workspace) - p.task.workspace) / p.task.stride;
    p.trace.add_piece(p.step, thread, first, last, begin, before);
  };
  const std::int64_t begin = trace_->now();
  if (alone) {
    watched.call(watched.context, 0, watched.items, watched.workspace);
  } else {
    threads_.run(watched);
  }
  trace_->add_step(pieces.step, begin);
}

void Executor::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  choose_places(inputs, outputs, false);
  if (!patch(false)) {
    // Strides that a kernel would need more workspace for than was planned: dense copies are what was planned for.
    choose_places(inputs, outputs, true);
    patch(false);
  }
  const auto copy = [&](std::size_t i) {
    const Call<kernel::Copy>& c = copies_[i];
    execute(c, c.kernel->plan(c.arguments), static_cast<double>(port(i).bytes), plan_.steps.size());
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (staged_[i] != 0) copy(i);
  try {
    rebind_masks();
  } catch (const std::invalid_argument& e) {
    throw Error(e.what());
  }
  has_run_ = true;
  for (std::int32_t& bad : plan_.bad) bad = 0;
  for (std::int64_t& rows : plan_.expert_rows) rows = 0;
  run_steps(false);
  for (std::size_t i = inputs.size(); i < staging_.size(); ++i)
    if (staged_[i] != 0) copy(i);
  for (std::size_t i = 0; i < plan_.bad.size(); ++i)
    if (plan_.bad[i] != 0)
      throw Error(describe(graph_, plan_.bad_nodes[i]) + ": " + bad_id(graph_.nodes[plan_.bad_nodes[i]].op) +
                  "; the results are not valid");
}

mask::Counts Executor::count(const Step& step, std::int64_t strip, std::int64_t block) const {
  return masks_[static_cast<std::size_t>(step.mask)].tiles->count_all(strip, block);
}

}  // namespace treadle::plan

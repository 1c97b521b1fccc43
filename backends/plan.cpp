#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/memory_plan.hpp>
#include <treadle/backends/names.hpp>
#include <treadle/backends/planner.hpp>
#include <treadle/backends/reshaped.hpp>
#include <treadle/backends/reuse.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>

namespace treadle::plan {
namespace {

constexpr std::size_t max_steps = 10'000'000;

std::string bytes_text(std::size_t bytes) {
  const double gib = static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0);
  return gib >= 0.1 ? std::to_string(static_cast<long long>(gib * 10) / 10) + "." +
                          std::to_string(static_cast<long long>(gib * 10) % 10) + " GiB"
                    : std::to_string(bytes / 1024) + " KiB";
}

}  // namespace

/// Large pieces lie on large pages where the system has them to give: a product that goes from row to row would miss
/// the table of addresses at each step.
std::shared_ptr<void> allocate(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  bytes = std::max(align_up(bytes), memory_alignment);
  const auto alignment = std::align_val_t{bytes >= 2 * page ? page : memory_alignment};
  void* const memory = ::operator new(bytes, alignment);
#ifdef MADV_HUGEPAGE
  if (bytes >= 2 * page) madvise(memory, bytes / page * page, MADV_HUGEPAGE);  // an advice: a refusal is no error
#endif
  return {memory, [alignment](void* p) { ::operator delete(p, alignment); }};
}

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::size_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size)
                               : std::size_t{1} << 40;
}

bool MaskUse::operator==(const MaskUse& o) const {
  const scalar::Extents &a = extents, &b = o.extents;
  if (root != o.root || a.batch != b.batch || a.heads != b.heads || a.q_len != b.q_len || a.k_len != b.k_len ||
      a.iteration != b.iteration || !(dense == o.dense) || tables.size() != o.tables.size())
    return false;
  for (std::size_t i = 0; i < tables.size(); ++i)
    if (tables[i].name != o.tables[i].name || !(tables[i].view == o.tables[i].view)) return false;
  return true;
}

Planner::Planner(GraphView graph, const std::map<std::string, std::int64_t>& sizes, const kernel::Table& kernels,
                 std::string_view backend, Constants& constants, std::vector<StateStorage>& states)
    : g_(graph),
      sizes_(graph, sizes),
      kernels_(kernels),
      backend_(backend),
      constants_(constants),
      states_(states),
      slots_(graph.values.size()),
      redirects_(graph.values.size()),
      used_(graph.values.size(), 0),
      merged_(graph.values.size(), 0),
      nodes_of_(graph.regions.size()) {
  for (std::int32_t n = 0; n < g_.size(); ++n) {
    nodes_of_[static_cast<std::size_t>(g_.nodes[n].region)].push_back(n);
    for (const Value v : g_.inputs(n)) {
      used_[index(v)] = 1;
      if (g_.nodes[n].op == op::merge_heads) merged_[index(v)] = 1;
    }
  }
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(g_.regions.size()); ++r)
    for (const Value v : g_.results(r)) used_[index(v)] = 1;
}

void Planner::fail(std::int32_t n, const std::string& text) const { throw Error(describe(g_, n) + ": " + text); }

Plan Planner::run() {
  for (std::int32_t n = 0; n < g_.size(); ++n) {
    if (g_.nodes[n].op != op::output) continue;
    const Value v = g_.inputs(n)[0];
    const int b = add_buffer(Place::output, g_.info(v).dtype, sizes_(g_.shape(v)));
    plan_.buffers[static_cast<std::size_t>(b)].slot = static_cast<int>(plan_.outputs.size());
    plan_.outputs.push_back(b);
    plan_.output_names.emplace_back(g_.leaf(n));
    plan_.output_nodes.push_back(n);
    if (!redirects_[index(v)]) redirects_[index(v)] = whole(plan_.buffers[static_cast<std::size_t>(b)], b);
  }
  redirect_backwards(0);
  walk(0);
  lay_out();
  return std::move(plan_);
}

void Planner::walk(std::int32_t region) {
  for (const std::int32_t n : nodes_of_[static_cast<std::size_t>(region)]) {
    if (g_.nodes[n].op == op::repeat) {
      repeat(n);
    } else {
      lower(n);
    }
    if (plan_.steps.size() > max_steps)
      fail(n, "the model unrolls to more than " + std::to_string(max_steps) + " steps; use fewer repetitions");
  }
}

void Planner::redirect_backwards(std::int32_t region) {
  const auto& nodes = nodes_of_[static_cast<std::size_t>(region)];
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const op o = g_.nodes[*it].op;
    if (o != op::transpose && o != op::merge_heads && o != op::reshape) continue;
    const auto& to = redirects_[index({*it, 0})];
    auto& from = redirects_[index(g_.inputs(*it)[0])];
    if (!to || from) continue;
    View v = *to;
    if (o == op::reshape) {
      from = reshaped(buffer(v), v, sizes_(g_.shape(g_.inputs(*it)[0])));
      continue;
    }
    if (o == op::transpose) {
      std::int64_t perm = g_.get_integer(*it, key::perm);
      for (std::size_t i = 0; i < v.dims.size(); ++i, perm /= 8)
        v.dims[static_cast<std::size_t>(perm % 8)] = to->dims[i];
    } else {
      if (v.dims.size() + 1 > max_rank) continue;
      const auto heads = sizes_(g_.shape(g_.inputs(*it)[0]));
      v = divided(v, v.dims.size() - 1, heads[heads.size() - 3]);
      std::swap(v.dims[v.dims.size() - 3], v.dims[v.dims.size() - 2]);
    }
    from = v;
  }
}

void Planner::repeat(std::int32_t n) {
  const std::int64_t times = g_.get_integer(n, key::times);
  const auto carried = static_cast<std::size_t>(g_.get_integer(n, key::carried));
  const auto captured = static_cast<std::size_t>(g_.get_integer(n, key::captured));
  const auto sides = static_cast<std::size_t>(g_.get_integer(n, key::sides));
  const auto region = static_cast<std::int32_t>(g_.get_integer(n, key::region));
  const auto results = g_.results(region);
  const auto output = [&](std::size_t i) { return Value{n, static_cast<std::int32_t>(i)}; };

  std::vector<Slot> inputs;
  for (const Value v : g_.inputs(n)) inputs.push_back(slot(v));
  std::vector<View> stacks(sides);
  for (std::size_t s = 0; s < sides; ++s) stacks[s] = allocate(output(carried + s), Need::any);

  for (std::int64_t i = 0; i < times; ++i) {
    iterations_.push_back(i);
    for (const std::int32_t m : nodes_of_[static_cast<std::size_t>(region)]) {
      for (int o = 0; o < g_.nodes[m].outputs.count; ++o) redirects_[index({m, o})].reset();
      if (g_.nodes[m].op != op::region_input) continue;
      const auto which = static_cast<std::size_t>(g_.get_integer(m, key::index));
      slot({m, 0}) = inputs[which];
      if (which >= carried + captured) slot({m, 0}).view = picked(inputs[which].view, 0, i);
    }
    for (std::size_t s = 0; s < sides; ++s) redirects_[index(results[carried + s])] = picked(stacks[s], 0, i);
    if (i + 1 == times)
      for (std::size_t c = 0; c < carried; ++c)
        if (!redirects_[index(results[c])]) redirects_[index(results[c])] = redirects_[index(output(c))];
    redirect_backwards(region);
    walk(region);
    for (std::size_t s = 0; s < sides; ++s) {
      Slot& made = slot(results[carried + s]);
      if (made.mask >= 0)
        made = {mask_values(n, made.mask, virtual_masks_[static_cast<std::size_t>(made.mask)].shape), -1};
      const View from = settled(made), to = picked(stacks[s], 0, i);
      if (!same_place(from, to)) copy(n, from, to);
    }
    // All results first: a body may hand one carried value on as another.
    std::vector<Slot> next;
    for (std::size_t c = 0; c < carried; ++c) next.push_back(slot(results[c]));
    for (std::size_t c = 0; c < carried; ++c) inputs[c] = next[c];
    iterations_.pop_back();
  }
  for (std::size_t c = 0; c < carried; ++c) slot(output(c)) = inputs[c];
  for (std::size_t s = 0; s < sides; ++s) slot(output(carried + s)) = {stacks[s], -1};
  for (std::size_t s = carried + captured; s < inputs.size(); ++s)
    slot(output(carried + sides + s - carried - captured)) = inputs[s];
}

int Planner::add_buffer(Place place, DType dtype, const std::vector<std::int64_t>& shape) {
  if (shape.size() > max_rank)
    throw Error("a tensor of rank " + std::to_string(shape.size()) + "; at most " + std::to_string(max_rank) +
                " is possible");
  Buffer b;
  b.place = place;
  std::int64_t n = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t d : shape) n = checked_multiply(n, std::max<std::int64_t>(d, 1));
  b.view = dense_view(nullptr, dtype, shape);
  b.bytes = static_cast<std::size_t>(b.view.size()) * size_of(dtype);
  plan_.buffers.push_back(std::move(b));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

View Planner::fresh(DType dtype, const std::vector<std::int64_t>& shape) {
  const int b = add_buffer(Place::arena, dtype, shape);
  return whole(plan_.buffers[static_cast<std::size_t>(b)], b);
}

View Planner::allocate(Value v, Need need) {
  if (auto& to = redirects_[index(v)]) {
    View trial = *to;
    const bool fits =
        need == Need::any || (require_unit(buffer(trial), trial, false) && (need == Need::unit || collapses(trial)));
    if (fits) {
      View out = *to;
      if (need != Need::any) require_unit(buffer(out), out);  // a condition on the caller's strides
      return out;
    }
  }
  std::vector<std::int64_t> shape = sizes_(g_.shape(v));
  if (merged_[index(v)] != 0 && need == Need::unit && shape.size() >= 3) {
    // Head by head in the order in which merge_heads wants them, so that it is a view.
    const std::size_t r = shape.size();
    std::swap(shape[r - 3], shape[r - 2]);
    View out = fresh(g_.info(v).dtype, shape);
    std::swap(out.dims[r - 3], out.dims[r - 2]);
    return out;
  }
  return fresh(g_.info(v).dtype, shape);
}

Planner::Line Planner::allocate_line(Value v) {
  View out = allocate(v, Need::any), trial = out;
  bool fits = true;
  while (fits && trial.dims.size() > 1) {
    fits = can_merge(buffer(trial), trial, 0);
    if (fits) merge(buffer(trial), trial, 0, false);
  }
  if (!fits) out = fresh(out.dtype, out.shape());
  View line = out;
  while (line.dims.size() > 1) merge(buffer(line), line, 0);
  if (line.dims.empty()) line.dims.push_back({1, -1, 1});
  return {out, line};
}

void Planner::keep_alive(const View& v) {
  Buffer& b = buffer(v);
  const auto now = static_cast<std::int64_t>(plan_.steps.size()) - 1;
  if (b.first < 0) b.first = now;
  b.last = now;
}

void Planner::operand(TensorView& tensor, const View& v, bool written) {
  keep_alive(v);
  Step& s = plan_.steps.back();
  s.operands.push_back({&tensor, v, written});
  s.patched = s.patched || buffer(v).callers();
  // An embedding reads some rows of its table; everything else reads all of each operand.
  s.bytes += static_cast<double>(v.size()) * static_cast<double>(size_of(v.dtype));
}

void Planner::copy(std::int32_t n, const View& from, const View& to) {
  auto& a = step(n, kernels_.copy);
  operand(a.from, from);
  operand(a.to, to, true);
}

View Planner::dense(std::int32_t n, const View& v) {
  if (constant(v) && v.dtype == f32) return folded_concatenation(n, {v}, 0);
  const View out = fresh(v.dtype, v.shape());
  copy(n, v, out);
  return out;
}

View Planner::unit(std::int32_t n, View v) { return require_unit(buffer(v), v) ? v : dense(n, v); }

bool Planner::collapses(View v) {
  while (v.dims.size() > 2) {
    if (!can_merge(buffer(v), v, 0)) return false;
    merge(buffer(v), v, 0, false);
  }
  return true;
}

View Planner::collapsed(View v) {
  while (v.dims.size() > 2) merge(buffer(v), v, 0);
  while (v.dims.size() < 2) v.dims.insert(v.dims.begin(), ViewDim{1, -1, v.dims.empty() ? 1 : v.dims[0].size});
  require_unit(buffer(v), v);
  return v;
}

View Planner::rows(std::int32_t n, const View& v) {
  View trial = v;
  if (!require_unit(buffer(trial), trial, false) || !collapses(trial)) return collapsed(dense(n, v));
  return collapsed(v);
}

View Planner::flat(std::int32_t n, const View& v) {
  View r = v;
  bool fits = true;
  while (fits && r.dims.size() > 1) {
    fits = can_merge(buffer(r), r, 0);
    if (fits) merge(buffer(r), r, 0, false);
  }
  View trial = r;
  if (!fits || !require_unit(buffer(trial), trial, false))
    r = dense(n, v);
  else
    r = v;
  while (r.dims.size() > 1) merge(buffer(r), r, 0);
  if (r.dims.empty()) r.dims.push_back({1, -1, 1});
  require_unit(buffer(r), r);
  return r;
}

/// Brings views of equal leading dims to rank 4 by joining dims before the last `keep`; copies what cannot be joined.
/// The last view is written and never copied: callers give it a dense buffer if it has more dims.
void Planner::to_rank_4(std::int32_t n, std::vector<View*> views, std::size_t keep) {
  const auto joins = [&](std::size_t i) {
    return std::all_of(views.begin(), views.end(), [&](const View* v) { return can_merge(buffer(*v), *v, i); });
  };
  while (views[0]->dims.size() > 4) {
    std::size_t at = 0;
    const std::size_t limit = views[0]->dims.size() - keep;
    while (at + 1 < limit && !joins(at)) ++at;
    if (at + 1 >= limit) {
      for (View* v : views)
        if (v != views.back()) *v = dense(n, *v);
      at = 0;
      if (!joins(at)) fail(n, "more than 4 dims that cannot be joined");
    }
    for (View* v : views) merge(buffer(*v), *v, at);
  }
  for (View* v : views)
    while (v->dims.size() < 4) v->dims.insert(v->dims.begin(), ViewDim{1, -1, 0});
}

/// Offsets in the arena. A result that may be written over its operand lives in the operand's memory, as one buffer
/// that lives as long as both; a plan without that is taken where the greedy one comes out smaller.
void Planner::lay_out_arena() {
  const std::vector<int> targets = in_place_targets(plan_);
  const auto root = [&](std::size_t i) {
    while (targets[i] >= 0) i = static_cast<std::size_t>(targets[i]);
    return i;
  };
  std::vector<Lifetime> separate, joined;
  std::vector<std::size_t> which, at(plan_.buffers.size(), 0);  // which: buffer of each lifetime; at: the other way
  std::vector<std::size_t> place(plan_.buffers.size(), 0);      // of a root among the joined
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const Buffer& b = plan_.buffers[i];
    if (b.place != Place::arena || b.first < 0) continue;
    at[i] = separate.size();
    which.push_back(i);
    separate.push_back({b.first, b.last, std::max<std::size_t>(b.bytes, 1)});
    if (root(i) == i) {
      place[i] = joined.size();
      joined.push_back(separate.back());
    }
  }
  for (const std::size_t i : which) {
    Lifetime& life = joined[place[root(i)]];
    life.first = std::min(life.first, plan_.buffers[i].first);
    life.last = std::max(life.last, plan_.buffers[i].last);
  }
  const MemoryPlan apart = plan_memory(separate), together = plan_memory(joined);
  plan_.separate_bytes = apart.bytes;
  plan_.arena_bytes = std::min(apart.bytes, together.bytes);
  for (const std::size_t i : which)
    plan_.buffers[i].offset = together.bytes <= apart.bytes ? together.offsets[place[root(i)]] : apart.offsets[at[i]];
}

void Planner::lay_out() {
  make_joins();
  fold_at_bind(plan_);
  lay_out_arena();
  std::size_t outside = 0;
  const auto wants_memory = [&](std::size_t i) {  // joins that no step reads have none
    return plan_.buffers[i].place == Place::constant && plan_.buffers[i].view.data == nullptr &&
           !joins_.contains(static_cast<int>(i));
  };
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i)
    if (plan_.buffers[i].callers() || wants_memory(i)) outside += align_up(plan_.buffers[i].bytes);

  std::vector<StateStorage> states;
  for (StateStorage& want : wanted_states_) {
    const auto old =
        std::find_if(states_.begin(), states_.end(), [&](const StateStorage& s) { return s.name == want.name; });
    const bool kept = old != states_.end() && old->view.shape == want.view.shape && old->view.rank == want.view.rank &&
                      old->view.dtype == want.view.dtype;
    states.push_back(kept ? *old : want);
    if (!kept) outside += align_up(want.bytes);
  }
  const std::size_t need = plan_.arena_bytes + outside, have = available_memory();
  if (need > have)
    throw Error("these lengths need " + bytes_text(need) + " of memory; " + bytes_text(have) +
                " is available, so use shorter ones");

  for (StateStorage& s : states) {
    if (s.data) continue;
    s.data = plan::allocate(s.bytes);
    s.view.data = s.data.get();
    std::memset(s.view.data, 0, s.bytes);
  }
  states_ = std::move(states);
  for (Buffer& b : plan_.buffers)
    if (b.place == Place::state) b.view.data = states_[static_cast<std::size_t>(b.slot)].view.data;
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    Buffer& b = plan_.buffers[i];
    if (!wants_memory(i)) continue;
    plan_.owned.push_back(plan::allocate(b.bytes));
    b.view.data = plan_.owned.back().get();
  }
  for (auto& [b, fill] : fills_) fill(plan_.buffers[static_cast<std::size_t>(b)].view.as<float>());
}

Plan make_plan(GraphView graph, const std::map<std::string, std::int64_t>& sizes, const kernel::Table& kernels,
               std::string_view backend, Constants& constants, std::vector<StateStorage>& states) {
  return Planner(graph, sizes, kernels, backend, constants, states).run();
}

}  // namespace treadle::plan

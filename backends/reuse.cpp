#include <treadle/backends/reuse.hpp>

#include <algorithm>

namespace treadle::plan {
namespace {

const Buffer& buffer_of(const Plan& plan, const View& v) { return plan.buffers[static_cast<std::size_t>(v.buffer)]; }

bool fixed(const Plan& plan, const std::vector<char>& kept, const View& v) {
  return buffer_of(plan, v).place == Place::constant || kept[static_cast<std::size_t>(v.buffer)] != 0;
}

/// Whether the step reads the same in every run, if the buffers in `kept` do.
bool reads_constants(const Plan& plan, const std::vector<char>& kept, const Step& s) {
  // What reads ids reports bad ones in the run.
  if (std::holds_alternative<Call<kernel::Embedding>>(s.call) ||
      std::holds_alternative<Call<kernel::EmbeddingSum>>(s.call) ||
      std::holds_alternative<Call<kernel::CrossEntropy>>(s.call) ||
      std::holds_alternative<Call<kernel::Gather>>(s.call) || std::holds_alternative<Call<kernel::Scatter>>(s.call))
    return false;
  const auto all = [&](const std::vector<Lookup>& tables) {
    return std::all_of(tables.begin(), tables.end(), [&](const Lookup& l) { return fixed(plan, kept, l.view); });
  };
  if (s.mask >= 0) {
    const MaskUse& m = plan.masks[static_cast<std::size_t>(s.mask)];
    if (!all(m.tables) || (m.dense.buffer >= 0 && !fixed(plan, kept, m.dense))) return false;
  }
  if (s.score >= 0 && !all(plan.scores[static_cast<std::size_t>(s.score)].tables)) return false;
  return std::all_of(s.operands.begin(), s.operands.end(),
                     [&](const Operand& o) { return o.written || fixed(plan, kept, o.view); });
}

/// The operand that the step's kernel may overwrite: it reads every element before it writes there, and no other
/// element later.
bool may_overwrite(const Step& s, const Operand& written, const Operand& read) {
  if (const auto* norm = std::get_if<Call<kernel::AddNorm>>(&s.call)) {
    // Both results at once: the sum takes the place of one operand, the rows that of the other.
    const kernel::AddNorm& a = norm->arguments;
    return written.tensor == &a.sum ? read.tensor == &a.a : written.tensor == &a.out && read.tensor == &a.b;
  }
  if (const auto* linear = std::get_if<Call<kernel::Linear>>(&s.call))
    return read.tensor == &linear->arguments.residual;
  return std::holds_alternative<Call<kernel::Elementwise>>(s.call) ||
         std::holds_alternative<Call<kernel::Map>>(s.call) || std::holds_alternative<Call<kernel::Combine>>(s.call) ||
         std::holds_alternative<Call<kernel::LayerNorm>>(s.call) ||
         std::holds_alternative<Call<kernel::RmsNorm>>(s.call) ||
         std::holds_alternative<Call<kernel::Softmax>>(s.call) ||
         std::holds_alternative<Call<kernel::LogSoftmax>>(s.call);
}

/// Every element of the buffer, whatever the order.
bool shows_all(const Buffer& b, const View& v) {
  return static_cast<std::size_t>(v.size()) * size_of(v.dtype) == b.bytes &&
         std::none_of(v.dims.begin(), v.dims.end(), [&](const ViewDim& d) { return d.size > 1 && stride(b, d) == 0; });
}

/// Element by element at the same distance from the start.
bool same_layout(const Buffer& a, const View& x, const Buffer& b, const View& y) {
  if (x.dims.size() != y.dims.size()) return false;
  for (std::size_t i = 0; i < x.dims.size(); ++i)
    if (x.dims[i].size != y.dims[i].size || (x.dims[i].size > 1 && stride(a, x.dims[i]) != stride(b, y.dims[i])))
      return false;
  return true;
}

}  // namespace

void fold_at_bind(Plan& plan) {
  // Everything, until a step shows that it changes from run to run; what it writes then changes too.
  std::vector<char> kept(plan.buffers.size(), 0);
  for (std::size_t i = 0; i < kept.size(); ++i)
    kept[i] = plan.buffers[i].place == Place::arena && plan.buffers[i].bytes <= largest_kept ? 1 : 0;
  for (Step& s : plan.steps) s.at_bind = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (Step& s : plan.steps) {
      if (!s.at_bind) continue;
      const bool writes_kept = std::all_of(s.operands.begin(), s.operands.end(), [&](const Operand& o) {
        return !o.written || kept[static_cast<std::size_t>(o.view.buffer)] != 0;
      });
      if (writes_kept && reads_constants(plan, kept, s)) continue;
      s.at_bind = false;
      for (const Operand& o : s.operands)
        if (o.written) kept[static_cast<std::size_t>(o.view.buffer)] = 0;
      changed = true;
    }
  }
  for (const Step& s : plan.steps)
    for (const Operand& o : s.operands)
      if (s.at_bind && o.written) plan.buffers[static_cast<std::size_t>(o.view.buffer)].place = Place::constant;
}

std::vector<int> in_place_targets(const Plan& plan) {
  std::vector<int> targets(plan.buffers.size(), -1);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& s = plan.steps[i];
    const auto now = static_cast<std::int64_t>(i);
    for (const Operand& w : s.operands) {
      const Buffer& to = buffer_of(plan, w.view);
      if (!w.written || to.place != Place::arena || to.first != now || !shows_all(to, w.view)) continue;
      for (const Operand& r : s.operands) {
        const Buffer& from = buffer_of(plan, r.view);
        if (r.written || from.place != Place::arena || from.last != now || from.bytes != to.bytes ||
            !may_overwrite(s, w, r) || !same_layout(from, r.view, to, w.view))
          continue;
        // x + xᵀ, or a projection's x that is also its residual: another look at what would be overwritten.
        const bool read_again = std::any_of(s.operands.begin(), s.operands.end(), [&](const Operand& o) {
          const bool harmless = std::holds_alternative<Call<kernel::Combine>>(s.call) && o.view == r.view;
          return &o != &r && o.view.buffer == r.view.buffer && !harmless;
        });
        if (read_again) continue;
        targets[static_cast<std::size_t>(w.view.buffer)] = r.view.buffer;
        break;
      }
    }
  }
  return targets;
}

}  // namespace treadle::plan

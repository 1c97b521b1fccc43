// Ops over the last dim to steps: softmax and its relatives, the loss, sorting; and pooling over the dim before it.

#include <treadle/backends/planner.hpp>

namespace treadle::plan {

/// Softmax and log-softmax.
template <class Arguments>
void Planner::softmax(std::int32_t n, const kernel::Kernel<Arguments>& kernel) {
  const View given = in(n, 0);
  require_f32(n, given, "its input");
  const View x = rows(n, given), out = allocate({n, 0}, Need::rows);
  auto& a = step(n, kernel, 5.0 * static_cast<double>(out.size()));
  operand(a.x, x);
  operand(a.out, collapsed(out), true);
  slot({n, 0}) = {out, -1};
}
template void Planner::softmax(std::int32_t, const kernel::Kernel<kernel::Softmax>&);
template void Planner::softmax(std::int32_t, const kernel::Kernel<kernel::LogSoftmax>&);

/// A row becomes one number: log-sum-exp and argmax.
template <class Arguments>
void Planner::row_reduction(std::int32_t n, const kernel::Kernel<Arguments>& kernel, double flops_each) {
  const View given = in(n, 0);
  require_f32(n, given, "its input");
  if (g_.nodes[n].op == op::argmax && given.dims.back().size == 0)
    fail(n, "argmax over an empty dim; at least 1 element is needed");
  const View x = rows(n, given);
  const Line out = allocate_line({n, 0});
  auto& a = step(n, kernel, flops_each * static_cast<double>(x.size()));
  operand(a.x, x);
  operand(a.out, out.line, true);
  slot({n, 0}) = {out.whole, -1};
}
template void Planner::row_reduction(std::int32_t, const kernel::Kernel<kernel::LogSumExp>&, double);
template void Planner::row_reduction(std::int32_t, const kernel::Kernel<kernel::ArgMax>&, double);

void Planner::cross_entropy(std::int32_t n) {
  const View given = in(n, 0), ids = flat(n, in(n, 1));
  require_f32(n, given, "the logits");
  if (ids.dtype != i32 && ids.dtype != i64)
    fail(n, "the ids are " + std::string(name(ids.dtype)) + "; i32 or i64 is right");
  const View logits = rows(n, given);
  const auto how = static_cast<reduction>(g_.get_integer(n, key::reduction));
  const Line out = allocate_line({n, 0});
  const View losses = how == reduction::none ? out.line : fresh(f32, {ids.dims[0].size});
  {
    auto& a = step(n, kernels_.cross_entropy, 3.0 * static_cast<double>(logits.size()));
    a.ignore_index = g_.get_integer(n, key::ignore_index, -100);
    operand(a.logits, logits);
    operand(a.ids, ids);
    operand(a.out, losses, true);
    a.bad = &plan_.bad.emplace_back(0);
    plan_.bad_nodes.push_back(n);
  }
  if (how != reduction::none) {
    auto& a = step(n, kernel::sum_losses, static_cast<double>(losses.size()));
    a.mean = how == reduction::mean;
    a.ignore_index = g_.get_integer(n, key::ignore_index, -100);
    operand(a.losses, losses);
    operand(a.ids, ids);
    operand(a.out, out.line, true);
  }
  slot({n, 0}) = {out.whole, -1};
}

void Planner::pool(std::int32_t n) {
  const auto how = static_cast<reduction>(g_.get_integer(n, key::reduction));
  const View given = in(n, 0);
  const std::size_t rank = given.dims.size();
  if (how == reduction::first) {
    if (given.dims[rank - 2].size == 0) fail(n, "the first of 0 tokens; at least 1 is needed");
    slot({n, 0}) = {picked(given, rank - 2, 0), -1};
    return;
  }
  require_f32(n, given, "its input");
  if (g_.find(n, key::length) != nullptr) return pool_runs(n, how);
  View x = unit(n, given);
  const View out = allocate({n, 0}, rank > 4 ? Need::rows : Need::unit);
  View to = out;
  require_unit(buffer(to), to);
  to.dims.insert(to.dims.end() - 1, ViewDim{1, -1, 0});
  const bool has_lengths = g_.get_integer(n, key::has_mask) != 0;
  View lengths;
  if (has_lengths) {
    lengths = in(n, 1);
    if (lengths.dtype != i32) fail(n, "the lengths are " + std::string(name(lengths.dtype)) + "; i32 is right");
    for (std::size_t i = 1; i < rank; ++i) lengths.dims.push_back({i + 2 < rank ? x.dims[i].size : 1, -1, 0});
    to_rank_4(n, {&x, &lengths, &to}, 2);
  } else {
    to_rank_4(n, {&x, &to}, 2);
  }
  auto& a = step(n, kernels_.pool, static_cast<double>(x.size()));
  a.how = how == reduction::max ? kernel::Pooling::max : kernel::Pooling::mean;
  operand(a.x, x);
  if (has_lengths) operand(a.lengths, lengths);
  operand(a.out, to, true);
  slot({n, 0}) = {out, -1};
}

/// Whole runs as one dim more, and what is left as a run of its own.
void Planner::pool_runs(std::int32_t n, reduction how) {
  const View x = unit(n, in(n, 0));
  const std::size_t at = x.dims.size() - 2;
  const std::int64_t length = x.dims[at].size, each = std::max<std::int64_t>(sizes_.attribute(n, key::length), 1);
  const View out = allocate({n, 0}, x.dims.size() > 3 ? Need::rows : Need::unit);
  slot({n, 0}) = {out, -1};
  const auto runs = [&](std::int64_t first, std::int64_t count, std::int64_t size) {
    if (count == 0) return;
    View from = divided(sliced(x, at, first * each, count * size), at, count), to = sliced(out, at, first, count);
    require_unit(buffer(to), to);
    to.dims.insert(to.dims.end() - 1, ViewDim{1, -1, 0});
    if (from.dims.size() > max_rank)
      fail(n, "its input has rank " + std::to_string(x.dims.size()) + "; at most " + std::to_string(max_rank - 1) +
                  " is possible");
    to_rank_4(n, {&from, &to}, 2);
    auto& a = step(n, kernels_.pool, static_cast<double>(from.size()));
    a.how = how == reduction::max ? kernel::Pooling::max : kernel::Pooling::mean;
    operand(a.x, from);
    operand(a.out, to, true);
  };
  runs(0, length / each, each);
  runs(length / each, length % each == 0 ? 0 : 1, length % each);
}

/// The order of each row, i64.
void Planner::argsort(std::int32_t n) {
  const View given = in(n, 0);
  if (given.dtype != f32 && given.dtype != i32 && given.dtype != i64)
    fail(n, "its input is " + std::string(name(given.dtype)) + "; f32, i32 or i64 is right");
  const View x = rows(n, given), out = allocate({n, 0}, Need::rows);
  auto& a = step(n, kernel::argsort, 8.0 * static_cast<double>(x.size()));
  operand(a.x, x);
  operand(a.out, collapsed(out), true);
  slot({n, 0}) = {out, -1};
}

void Planner::top_k_mask(std::int32_t n) {
  const View given = in(n, 0);
  require_f32(n, given, "its input");
  const View x = rows(n, given), out = allocate({n, 0}, Need::rows);
  auto& a = step(n, kernel::top_k_mask, 4.0 * static_cast<double>(x.size()));
  a.k = g_.get_integer(n, key::top_k);
  operand(a.x, x);
  operand(a.out, collapsed(out), true);
  slot({n, 0}) = {out, -1};
}

}  // namespace treadle::plan

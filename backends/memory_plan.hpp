#pragma once
// Where buffers lie in one arena: those that live at the same time never overlap, others share memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace treadle {

/// A buffer that is written at step `first` and read for the last time at step `last`, both inclusive.
struct Lifetime {
  std::int64_t first = 0, last = 0;
  std::size_t bytes = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one per buffer, multiples of `alignment`
  std::size_t bytes = 0;             ///< of the arena
};

inline constexpr std::size_t memory_alignment = 64;

constexpr std::size_t align_up(std::size_t n, std::size_t to = memory_alignment) { return (n + to - 1) / to * to; }

constexpr bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// Greedy by size: the largest buffer first, each into the tightest gap between those that live at the same time
/// (Pisarchyk and Lee 2020, §5.2). Works in constant evaluation: a static model's arena is a constant.
constexpr MemoryPlan plan_memory(std::span<const Lifetime> buffers) {
  MemoryPlan plan;
  std::vector<std::size_t> order, placed;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    order.push_back(i);
    plan.offsets.push_back(0);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    return a < b;
  });
  for (const std::size_t i : order) {
    const std::size_t bytes = align_up(buffers[i].bytes);
    std::size_t end = 0, best = 0, best_gap = 0;
    bool found = false;
    // `placed` is sorted by offset, so the gaps between neighbours in time are seen from left to right.
    for (const std::size_t j : placed) {
      if (!overlap(buffers[i], buffers[j])) continue;
      const std::size_t from = plan.offsets[j];
      if (from >= end + bytes && (!found || from - end < best_gap)) {
        found = true;
        best = end;
        best_gap = from - end;
      }
      end = std::max(end, from + align_up(buffers[j].bytes));
    }
    plan.offsets[i] = found ? best : end;
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + bytes);
    std::size_t at = 0;
    while (at < placed.size() && plan.offsets[placed[at]] <= plan.offsets[i]) ++at;
    placed.insert(placed.begin() + static_cast<std::ptrdiff_t>(at), i);
  }
  return plan;
}

/// The most bytes that live at one step: no plan can be smaller.
constexpr std::size_t memory_lower_bound(std::span<const Lifetime> buffers) {
  std::size_t most = 0;
  for (const Lifetime& at : buffers) {
    std::size_t live = 0;
    for (const Lifetime& b : buffers)
      if (b.first <= at.first && at.first <= b.last) live += align_up(b.bytes);
    most = std::max(most, live);
  }
  return most;
}

}  // namespace treadle

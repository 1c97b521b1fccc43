#include <treadle/backends/threads.hpp>

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>

namespace treadle {
namespace {

class TbbThreads final : public Threads {
 public:
  explicit TbbThreads(int threads)
      : threads_(threads > 0 ? threads : tbb::this_task_arena::max_concurrency()),
        limit_(tbb::global_control::max_allowed_parallelism,
               std::max(static_cast<std::size_t>(threads_),
                        tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))),
        arena_(threads_, 1) {
    arena_.initialize();
  }

  int slots() const override { return threads_; }

  void run(const Task& task) override {
    const std::size_t workers = std::min<std::size_t>(static_cast<std::size_t>(threads_), task.items);
    if (workers <= 1) return task.call(task.context, 0, task.items, task.workspace);
    // Items of one step may differ a lot (a causal strip late in the sequence costs more), so threads fetch small
    // pieces from a counter. Which thread computes an item changes nothing in its result.
    const std::size_t piece = std::max<std::size_t>(1, task.items / (workers * 8));
    // Its orders are those of oneTBB's own synchronisation, which a thread sanitizer cannot see into.
    std::atomic<std::size_t> next{0};
    const auto work = [&](std::size_t) {
      const auto slot = static_cast<std::size_t>(tbb::this_task_arena::current_thread_index());
      std::byte* workspace = task.workspace + slot * task.stride;
      for (;;) {
        const std::size_t first = next.fetch_add(piece, std::memory_order_acq_rel);
        if (first >= task.items) return;
        task.call(task.context, first, std::min(first + piece, task.items), workspace);
      }
    };
    arena_.execute([&] { tbb::parallel_for(std::size_t{0}, workers, work, tbb::static_partitioner{}); });
    next.load(std::memory_order_acquire);
  }

 private:
  int threads_;
  tbb::global_control limit_;
  tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Threads> make_tbb_threads(int threads) { return std::make_unique<TbbThreads>(threads); }

}  // namespace treadle

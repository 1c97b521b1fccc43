#pragma once
// How a step's work items are spread over threads: the only difference between the backends `simd` and `tbb`.

#include <cstddef>
#include <memory>

namespace treadle {

/// Independent work: `call(context, first, last, workspace)` for items [0, items), cut in any way. Results must not
/// depend on the cut.
struct Task {
  std::size_t items = 0;
  void (*call)(const void* context, std::size_t first, std::size_t last, void* workspace) = nullptr;
  const void* context = nullptr;
  std::byte* workspace = nullptr;  ///< `slots` pieces, `stride` bytes apart
  std::size_t stride = 0;
};

class Threads {
 public:
  virtual ~Threads() = default;
  /// How many threads may work at the same time; each has a workspace of its own.
  virtual int slots() const = 0;
  /// Returns when every item is done. Allocates nothing on the heap once warm.
  virtual void run(const Task& task) = 0;
};

/// The calling thread alone.
class OneThread final : public Threads {
 public:
  int slots() const override { return 1; }
  void run(const Task& task) override { task.call(task.context, 0, task.items, task.workspace); }
};

/// A oneTBB arena of its own with this many threads; 0: as many as the CPU has.
std::unique_ptr<Threads> make_tbb_threads(int threads);

}  // namespace treadle

#pragma once
// Runs a plan: fills in the caller's addresses, binds masks to this run's tables, calls the kernels in order.

#include <treadle/backends/plan.hpp>
#include <treadle/backends/threads.hpp>
#include <treadle/backends/trace.hpp>
#include <treadle/graph/mask/tiles.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace treadle::plan {

/// A plan with memory. After the constructor nothing is allocated any more.
class Executor {
 public:
  /// Throws Error if tables or workspaces do not fit. Runs are written to `trace` if there is one.
  Executor(Plan plan, GraphView graph, const kernel::Table& kernels, Threads& threads, Trace* trace = nullptr);

  /// `inputs` and `outputs` in the order of the plan; an output without data is not handed out. Shapes are checked
  /// already.
  void run(std::span<const TensorView> inputs, std::span<const TensorView> outputs);

  const Plan& plan() const { return plan_; }
  std::size_t workspace_bytes() const { return workspace_stride_ * static_cast<std::size_t>(threads_.slots()); }
  std::size_t staging_bytes() const { return staging_bytes_; }
  /// Whether a step's mask has all that it looks up: one that reads the caller's memory has it after a run only.
  /// One with tables or a tensor that the run computes never has: their memory serves others behind it.
  bool countable(const Step& step) const {
    const BoundMask& m = masks_[static_cast<std::size_t>(step.mask)];
    return !m.passing && (has_run_ || !m.callers);
  }
  /// Pairs that a step's mask keeps and that its tiles cover, over all heads, with the tables bound last. Allocates.
  mask::Counts count(const Step& step, std::int64_t strip, std::int64_t block) const;

 private:
  struct BoundMask {
    std::unique_ptr<mask::Tiles> tiles;
    std::vector<scalar::Table> tables;
    bool callers = false;   ///< reads the caller's memory: bound again in every run
    bool computed = false;  ///< reads a table that a step writes: bound again before the first step that uses it
    bool ready = false;     ///< that has happened in this run
    bool passing = false;   ///< reads a table or a tensor that a run writes into the arena
  };
  struct BoundScore {
    std::unique_ptr<scalar::TileProgram> program;
    std::vector<scalar::Table> tables;
    bool callers = false, computed = false, ready = false;
  };

  Plan plan_;
  GraphView graph_;
  const kernel::Table& kernels_;
  Threads& threads_;
  Trace* trace_ = nullptr;
  std::int32_t first_traced_ = 0;  ///< number of the first step in the trace
  std::shared_ptr<void> arena_, workspace_;
  std::size_t workspace_stride_ = 0, staging_bytes_ = 0;
  std::vector<std::shared_ptr<void>> staging_;  ///< inputs, then outputs
  std::vector<char> staged_;
  std::vector<char> written_;  ///< buffers that a step writes
  bool has_run_ = false;
  std::vector<BoundMask> masks_;
  std::vector<BoundScore> scores_;
  std::vector<Call<kernel::Copy>> copies_;  ///< of staged inputs and outputs

  Buffer& buffer(int i) { return plan_.buffers[static_cast<std::size_t>(i)]; }
  Buffer& port(std::size_t i) {
    return buffer(i < plan_.inputs.size() ? plan_.inputs[i] : plan_.outputs[i - plan_.inputs.size()]);
  }
  template <class Use>
  bool bind_tables(const Use& use, std::vector<scalar::Table>& tables, bool dummy);
  template <class Use>
  bool has_computed_tables(const Use& use) const {
    return std::any_of(use.tables.begin(), use.tables.end(),
                       [&](const Lookup& l) { return written_[static_cast<std::size_t>(l.view.buffer)] != 0; });
  }
  void make_masks();
  void rebind_mask(std::size_t i);
  void rebind_score(std::size_t i);
  void rebind_masks();
  /// Masks and scores of a step whose tables this run has just computed.
  void bind_computed(const Step& s);
  /// Addresses of operands; says whether every step's workspace is still large enough.
  bool patch(bool all);
  void choose_places(std::span<const TensorView> inputs, std::span<const TensorView> outputs, bool stage_all);
  /// `step` is its number in the plan; copies of the caller's views have the one behind the last.
  template <class Arguments>
  void execute(const Call<Arguments>& call, const kernel::Work& work, double cost, std::size_t step);
  void traced(const Task& task, bool alone, std::size_t step);
  void run_steps(bool at_bind);
  void announce_steps();
};

}  // namespace treadle::plan

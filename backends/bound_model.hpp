#pragma once
// A model bound to parameters, a backend and lengths: what runs.
//
//   BoundModel model(graph, parameters, {.backend = "simd"});
//   model.bind_dims({{"batch", 1}, {"seq", 128}});              // plans; the only place that allocates
//   model.run({{"tokens", tokens}}, {{"logits", logits}});      // as often as you like, without a heap allocation
//
// The graph may be the frozen tables of a static model or a `Graph` made at run time: both go through the same planner
// and run the same steps over the same kernels, so they give the same bits on the same ISA.

#include <treadle/backends/error.hpp>
#include <treadle/backends/parameters.hpp>
#include <treadle/graph/graph.hpp>
#include <treadle/graph/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace treadle {

class Trace;

/// A tensor that is handed in or out by the leaf name of its input or output node.
struct NamedTensor {
  std::string_view name;
  TensorView tensor;
};

/// The length of a named dim.
struct NamedSize {
  std::string_view name;
  std::int64_t value = 0;
};

struct BindOptions {
  std::string_view backend = "tbb";  ///< reference, simd or tbb (backend.hpp lists them)
  std::string_view isa = "";         ///< portable, avx2, avx512, …; empty: the best that this CPU has
  int threads = 0;                   ///< of tbb; 0: as many as the CPU has
  bool float64 = false;              ///< compute in double; reference only
  /// Use attention kernels with the score function inlined where treadle_add_model compiled one (docs/06_speed.md);
  /// false: always the tile evaluator. The bits are the same.
  bool inlined = true;
  Trace* trace = nullptr;  ///< what runs when goes there (trace.hpp), if there is one; not of reference
};

/// What one step of a plan does and costs.
struct StepInfo {
  std::int32_t node = -1;  ///< of the graph; −1: a copy that no node asks for
  treadle::op op{};
  std::string name;    ///< full name of the node with the iterations of its repeats; may be empty
  std::string kernel;  ///< "attention_8x48", "copy", …
  std::string_view backend;
  std::string_view isa;
  double useful_flops = 0;    ///< what the mask keeps
  double executed_flops = 0;  ///< what the tiles compute
  bool upper_bound = false;   ///< the mask reads tables that only a run gives, and none has run: all pairs count
  double bytes = 0;           ///< operands read and results written, each once
  std::size_t work_items = 0;
  std::int64_t tile_queries = 0, tile_keys = 0;  ///< of attention with a mask
  bool at_bind = false;  ///< depends on nothing that changes between runs: ran when the model was bound, costs nothing
  std::string form;      ///< chosen at bind, where the kernel has several; else empty
  std::int64_t expert_rows = 0;  ///< of a product of experts: rows that the last run computed (tokens · top_k)
  bool in_arena = false;         ///< whether the result lies in the arena (else: the caller's memory or a state)
  std::size_t arena_offset = 0, arena_bytes = 0;
};

/// A buffer of the arena: results that live for some steps.
struct BufferInfo {
  std::string name;        ///< op and full name of the node whose step writes it first
  std::int32_t node = -1;  ///< that node
  std::size_t offset = 0, bytes = 0;
  std::size_t first_step = 0, last_step = 0;  ///< the first writes it, the last reads it; into steps()
};

/// Movable, not copyable. One run at a time per object; any number of objects run at the same time in different
/// threads.
class BoundModel {
 public:
  /// Copies the graph's tables, checks names and shapes of the parameters. Parameters that are only borrowed
  /// (`Parameters::set`) must outlive the model. A graph without named dims is ready to run at once.
  /// Throws Error: unknown backend or ISA, missing or wrongly shaped parameters, an op that the backend has no kernel
  /// for.
  BoundModel(GraphView graph, const Parameters& parameters, BindOptions options = {});
  BoundModel(BoundModel&&) noexcept;
  BoundModel& operator=(BoundModel&&) noexcept;
  ~BoundModel();

  /// Plans for these lengths. May be called again for others; packed weights are kept, and so are states whose shape
  /// stays. Throws Error: a dim without a value, a name that the graph does not have, lengths that do not fit the model
  /// or the memory.
  void bind_dims(std::span<const NamedSize> sizes);
  void bind_dims(std::initializer_list<NamedSize> sizes) { bind_dims(std::span(sizes.begin(), sizes.size())); }

  /// Runs once. Every input of the graph must be given; outputs that are not given are not handed out. Views may have
  /// any strides; those that a kernel cannot read as they are go through a copy. Allocates nothing (except on
  /// `reference`). Throws Error: missing or unknown names, wrong dtypes or shapes, ids outside an embedding's table.
  void run(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs);
  void run(std::initializer_list<NamedTensor> inputs, std::initializer_list<NamedTensor> outputs) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
  }

  /// A state's storage, by full name ("h.attn.k"): read it, write it, keep it between runs. Zero at first;
  /// `bind_dims` keeps what it holds if its shape stays, so that a cache can grow step by step.
  TensorView state(std::string_view name);
  void reset_states();

  /// Shape of an input or output after `bind_dims`, dense, without data.
  TensorView input_spec(std::string_view name) const;
  TensorView output_spec(std::string_view name) const;

  /// Bytes that a run touches beside parameters, states and the caller's tensors: arena + workspaces of all threads.
  std::size_t planned_bytes() const;
  std::size_t workspace_bytes() const;
  /// Bytes of the arena, where results lie over operands that die there, and what it would be if none did.
  std::size_t arena_bytes() const;
  std::size_t arena_bytes_without_reuse() const;
  /// Room for the caller's views that need a copy; touched only by runs that are given such views.
  std::size_t staging_bytes() const;

  std::string_view backend() const;
  std::string_view isa() const;
  int threads() const;
  std::span<const StepInfo> steps() const;
  /// The memory plan, in the order of the first steps. Buffers may share memory if no step needs both.
  std::span<const BufferInfo> buffers() const;
  /// One line per step: node, kernel, backend, ISA, arena offset and size.
  std::string describe() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace treadle

#pragma once
// The planner: from a graph and lengths to a list of steps over buffers.
//
// It walks the graph once, unrolls repeats (edges are data: an iteration is the same nodes with other views), turns ops
// that only rearrange into views, gives every other op a kernel with its argument struct, and lets producers write
// where the consumer wants the result: in the caller's output, in a slice of a stack, head by head for a later
// merge_heads. Frozen tables and run-time graphs go through here alike.

#include <treadle/backends/buffer.hpp>
#include <treadle/backends/kernel.hpp>
#include <treadle/backends/parameters.hpp>
#include <treadle/backends/plain_kernels.hpp>
#include <treadle/backends/routing_kernels.hpp>
#include <treadle/graph/graph.hpp>
#include <treadle/graph/scalar/table.hpp>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace treadle::plan {

/// A kernel with what it will be called with.
template <class Arguments>
struct Call {
  const kernel::Kernel<Arguments>* kernel = nullptr;
  Arguments arguments;
};

using AnyCall =
    std::variant<Call<kernel::Attention>, Call<kernel::AttentionProbe>, Call<kernel::RelativeBias>,
                 Call<kernel::LinearAttention>, Call<kernel::RecurrentAttention>, Call<kernel::Map>,
                 Call<kernel::Linear>, Call<kernel::MatMul>, Call<kernel::LayerNorm>, Call<kernel::RmsNorm>,
                 Call<kernel::Softmax>, Call<kernel::LogSoftmax>, Call<kernel::LogSumExp>, Call<kernel::ArgMax>,
                 Call<kernel::ArgSort>, Call<kernel::TopKMask>, Call<kernel::Narrow>, Call<kernel::CrossEntropy>,
                 Call<kernel::SumLosses>, Call<kernel::Pool>, Call<kernel::Gather>, Call<kernel::Scatter>,
                 Call<kernel::Elementwise>, Call<kernel::Combine>, Call<kernel::Copy>, Call<kernel::Embedding>,
                 Call<kernel::MaskValues>, Call<kernel::Select>, Call<kernel::AddNorm>, Call<kernel::EmbeddingSum>,
                 Call<kernel::GatedLinear>, Call<kernel::Rope>, Call<kernel::RotaryTable>, Call<kernel::AdditiveScores>,
                 Call<kernel::RandomFeatures>, Call<kernel::ChooseExperts>, Call<kernel::GroupByExpert>,
                 Call<kernel::ExpertLinear>, Call<kernel::MixExperts>, Call<kernel::JoinAttention>>;

/// The scores that a step computes: those of attention or of a probe; nullptr for other steps.
inline kernel::Attention* scores_of(AnyCall& call) {
  if (auto* a = std::get_if<Call<kernel::Attention>>(&call)) return &a->arguments;
  if (auto* p = std::get_if<Call<kernel::AttentionProbe>>(&call)) return &p->arguments.scores;
  return nullptr;
}
inline const kernel::Attention* scores_of(const AnyCall& call) {
  if (const auto* a = std::get_if<Call<kernel::Attention>>(&call)) return &a->arguments;
  if (const auto* p = std::get_if<Call<kernel::AttentionProbe>>(&call)) return &p->arguments.scores;
  return nullptr;
}

/// Which view fills which tensor of a step's arguments. `tensor == nullptr`: the step only needs the buffer to be
/// alive.
struct Operand {
  TensorView* tensor = nullptr;
  View view;
  bool written = false;
};

struct Step {
  AnyCall call;
  std::int32_t node = -1;
  std::string name;
  std::vector<Operand> operands;
  int mask = -1, score = -1;  ///< into Plan::masks and Plan::scores
  bool patched = false;       ///< has operands in the caller's memory
  bool at_bind = false;       ///< reads constants alone: runs once, when the model is bound
  kernel::Work work;
  double flops = 0, bytes = 0;
};

/// A traced function bound to lengths, with the tables that it looks up.
struct Lookup {
  std::string name;
  View view;
};
struct MaskUse {
  int root = -1;  ///< in the scalar pool; −1: dense only
  scalar::Extents extents;
  std::vector<Lookup> tables;
  View dense;  ///< buffer −1: none
  std::int32_t node = -1;
  bool operator==(const MaskUse&) const;
};
struct ScoreUse {
  int root = -1;
  scalar::Extents extents;
  std::vector<Lookup> tables;
  std::int32_t node = -1;
};

/// What is made once from the parameters, whatever the lengths.
struct Constants {
  Parameters parameters;
  struct Memory {
    std::shared_ptr<void> data;
    TensorView view;
    std::size_t bytes = 0;
  };
  std::map<std::string, Memory> made;    ///< folded nodes and dense copies
  std::map<std::string, Memory> packed;  ///< weights in a kernel's order
};

struct StateStorage {
  std::string name;
  TensorView view;
  std::shared_ptr<void> data;
  std::size_t bytes = 0;
};

struct Plan {
  std::vector<Buffer> buffers;
  std::deque<Step> steps;  ///< a deque: operands point into their steps
  std::vector<MaskUse> masks;
  std::vector<ScoreUse> scores;
  std::vector<int> inputs, outputs;  ///< buffers, in the order of the nodes
  std::vector<std::string> input_names, output_names;
  std::vector<std::int32_t> output_nodes;
  std::size_t arena_bytes = 0, separate_bytes = 0;  ///< separate: if no step wrote over its operand
  std::vector<std::shared_ptr<void>> owned;         ///< constants that depend on the lengths
  /// Whether a step saw an id that is none of its table's or classes; one per step with ids, set by kernels.
  std::deque<std::int32_t> bad;
  std::vector<std::int32_t> bad_nodes;
  std::deque<std::vector<kernel::PackedWeights>> expert_weights;  ///< one list per product of experts
  std::deque<std::int64_t> expert_rows;                           ///< rows that such a product computed in this run
};

/// Plans, lays out the arena and checks that it fits into memory; allocates constants and states, but not the arena.
/// Throws Error.
Plan make_plan(GraphView graph, const std::map<std::string, std::int64_t>& sizes, const kernel::Table& kernels,
               std::string_view backend, Constants& constants, std::vector<StateStorage>& states);

/// 64-byte aligned memory, not initialised.
std::shared_ptr<void> allocate(std::size_t bytes);
/// Bytes that this machine could still give.
std::size_t available_memory();

}  // namespace treadle::plan

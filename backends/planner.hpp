#pragma once
// The planner's working state. plan.cpp walks the graph; lower.cpp turns one node into views and steps, with
// lower_layout.cpp, lower_masks.cpp and lower_rows.cpp for their families.

#include <treadle/backends/names.hpp>
#include <treadle/backends/plan.hpp>
#include <treadle/backends/sizes.hpp>

#include <functional>
#include <optional>

namespace treadle::plan {

class Planner {
 public:
  Planner(GraphView graph, const std::map<std::string, std::int64_t>& sizes, const kernel::Table& kernels,
          std::string_view backend, Constants& constants, std::vector<StateStorage>& states);
  Plan run();

 private:
  /// A mask that has no memory yet: fused attention reads its tiles.
  struct VirtualMask {
    std::int32_t node = -1;
    int root = -1;
    std::int64_t iteration = 0;
    std::vector<Lookup> tables;
    View dense;
    std::vector<std::int64_t> shape;
    View written;  ///< its values, once a step has written them
  };
  /// What a value is at this point of the walk. Bodies of repeats overwrite theirs in every iteration.
  struct Slot {
    View view;
    int mask = -1;     ///< into virtual_masks_
    float factor = 1;  ///< of a constant that nobody has multiplied yet: packing a weight does it on the way
  };
  /// What a kernel asks of its output.
  enum class Need : std::uint8_t { any, unit, rows };

  GraphView g_;
  Sizes sizes_;
  const kernel::Table& kernels_;
  std::string_view backend_;
  Constants& constants_;
  std::vector<StateStorage>& states_;

  Plan plan_;
  std::vector<Slot> slots_;                          ///< per value of the graph
  std::vector<std::optional<View>> redirects_;       ///< where a value's producer had better write
  std::vector<char> used_, merged_;                  ///< per value: has a consumer; has one that merges its heads
  std::vector<std::vector<std::int32_t>> nodes_of_;  ///< per region
  std::vector<VirtualMask> virtual_masks_;
  std::vector<std::int64_t> iterations_;  ///< of the enclosing repeats, outermost first
  std::vector<StateStorage> wanted_states_;
  std::map<std::string, View> rotary_tables_;                       ///< layers that turn by the same angles share them
  std::vector<std::pair<int, std::function<void(float*)>>> fills_;  ///< buffers to fill once they have memory
  /// Constants that have no memory before somebody reads them: packing reads them part by part, and most are only
  /// packed.
  struct Join {
    std::vector<View> parts;
    std::size_t axis = 0;
  };
  std::map<int, Join> joins_;  ///< by buffer
  int scratch_of_ = -1;        ///< whose values `scratch_` holds
  std::shared_ptr<void> scratch_;

  // --- plan.cpp
  void walk(std::int32_t region);
  void redirect_backwards(std::int32_t region);
  void repeat(std::int32_t n);
  void lay_out();
  void lay_out_arena();
  std::size_t index(Value v) const {
    return static_cast<std::size_t>(std::int64_t{g_.nodes[v.node].outputs.first} + v.output);
  }
  Slot& slot(Value v) { return slots_[index(v)]; }
  [[noreturn]] void fail(std::int32_t n, const std::string& text) const;

  int add_buffer(Place place, DType dtype, const std::vector<std::int64_t>& shape);
  View fresh(DType dtype, const std::vector<std::int64_t>& shape);
  /// Where the value's producer writes. If the redirect cannot serve, a fresh buffer; the consumer then copies.
  View allocate(Value v, Need need);
  /// The same for a value that is written element by element: its view, and the view as one dim of any stride.
  struct Line {
    View whole, line;
  };
  Line allocate_line(Value v);
  Buffer& buffer(const View& v) { return plan_.buffers[static_cast<std::size_t>(v.buffer)]; }

  template <class Arguments>
  Arguments& step(std::int32_t n, const kernel::Kernel<Arguments>& kernel, double flops = 0);
  void operand(TensorView& tensor, const View& v, bool written = false);
  void keep_alive(const View& v);

  // --- views that kernels can take
  View dense(std::int32_t n, const View& v);
  View unit(std::int32_t n, View v);
  bool collapses(View v);
  View collapsed(View v);
  View rows(std::int32_t n, const View& v);
  View flat(std::int32_t n, const View& v);
  void to_rank_4(std::int32_t n, std::vector<View*> views, std::size_t keep);
  void copy(std::int32_t n, const View& from, const View& to);

  // --- constants
  bool constant(const View& v) {
    return buffer(v).place == Place::constant && (buffer(v).view.data != nullptr || joins_.contains(v.buffer));
  }
  std::string signature(const View& v);
  View constant_buffer(const std::string& key, const Constants::Memory& memory);
  View parameter(std::int32_t n);
  /// Memory of a constant in the graph, made once: element(i) for every i in row-major order.
  Constants::Memory constant_memory(const std::string& key, DType dtype, const std::vector<std::int64_t>& shape,
                                    const std::function<double(std::int64_t)>& element);
  View folded_concatenation(std::int32_t n, const std::vector<View>& parts, std::size_t axis);
  std::optional<TensorView> side_by_side(const Join& join);
  TensorView values_of(const View& v);
  void write_join(const Join& join, const TensorView& to);
  void make_joins();
  std::string memory_signature(const View& v);
  View folded_scale(const View& v, float factor);
  const View& settled(Slot& s);
  kernel::PackedWeights packed(const View& weight, float factor);

  // --- lower.cpp, lower_positions.cpp, lower_features.cpp, lower_experts.cpp: one function per op family
  void lower(std::int32_t n);
  View in(std::int32_t n, int i);
  void view_op(std::int32_t n);
  void concatenate(std::int32_t n);
  void append(std::int32_t n);
  void append_at_positions(std::int32_t n);
  void positions(std::int32_t n);
  void embedding(std::int32_t n);
  void combine(std::int32_t n, kernel::Binary op);
  View combine(std::int32_t n, const View& a, const View& b, kernel::Binary op, const View& out);
  void elementwise(std::int32_t n);
  void linear(std::int32_t n);
  void linear_by_matmul(std::int32_t n, const View& x, const View& weight, const View* bias, const View* residual);
  void matmul(std::int32_t n);
  void norm(std::int32_t n);
  void add_norm(std::int32_t n);
  void embedding_sum(std::int32_t n);
  void gated_linear(std::int32_t n);
  void attention(std::int32_t n);
  void attention_probe(std::int32_t n);
  void relative_bias(std::int32_t n);
  /// What changes attention's scores; the views of a node's inputs from 3 on.
  struct ScoreInputs {
    int mask = -1, score = -1;
    bool has_bias = false, has_sink = false;
    View bias, sink;
  };
  ScoreInputs score_inputs(std::int32_t n, const View& q, const View& k);
  /// Into the arguments of the last step.
  void set_scores(std::int32_t n, kernel::Attention& a, const View& q, const View& k, const ScoreInputs& given);
  void linear_attention(std::int32_t n);
  const kernel::Kernel<kernel::LinearAttention>& form_of(const View& q, const View& k, const View& v, bool causal,
                                                         bool state) const;
  void recurrent_attention(std::int32_t n);
  void map(std::int32_t n);
  void rope(std::int32_t n);
  View rotary_table(std::int32_t n);
  void additive_scores(std::int32_t n);
  void random_projection(std::int32_t n);
  void random_features(std::int32_t n);
  void moe(std::int32_t n);
  View experts(std::int32_t n, int input, const View& a, const View* source, const View& starts, activation function);
  void mask(std::int32_t n);
  void select(std::int32_t n);

  // --- lower_layout.cpp
  void reshape(std::int32_t n);
  void gather(std::int32_t n);
  void constant_node(std::int32_t n);
  void dropout(std::int32_t n);
  View filled(double value, DType dtype, const std::vector<std::int64_t>& shape);
  std::optional<View> as_rows(const View& v, const std::vector<std::int64_t>& shape);

  // --- lower_rows.cpp: over the last dim, or the one before it
  void pool(std::int32_t n);
  void pool_runs(std::int32_t n, reduction how);
  void argsort(std::int32_t n);
  void top_k_mask(std::int32_t n);
  template <class Arguments>
  void softmax(std::int32_t n, const kernel::Kernel<Arguments>& kernel);
  template <class Arguments>
  void row_reduction(std::int32_t n, const kernel::Kernel<Arguments>& kernel, double flops_each);
  void cross_entropy(std::int32_t n);

  // --- masks and scores
  std::vector<std::string> table_names(int root) const;
  std::vector<Lookup> tables(std::int32_t n, int root, std::span<const Value> inputs);
  bool depends_on_iteration(int root) const;
  int use_mask(std::int32_t n, const Slot& s, const std::vector<std::int64_t>& shape);
  void reads_mask(int which);
  void reads_score(int which);
  View mask_values(std::int32_t n, int virtual_mask, std::vector<std::int64_t> shape);
  void require_f32(std::int32_t n, const View& v, const char* what) const;
};

inline kernel::Unary unary(activation a) {
  switch (a) {
    case activation::none: return kernel::Unary::identity;
    case activation::relu: return kernel::Unary::relu;
    case activation::gelu: return kernel::Unary::gelu;
    case activation::gelu_tanh: return kernel::Unary::gelu_tanh;
    case activation::silu: return kernel::Unary::silu;
    case activation::sigmoid: return kernel::Unary::sigmoid;
    case activation::tanh: return kernel::Unary::tanh;
    case activation::exp: return kernel::Unary::exp;
    case activation::erf: return kernel::Unary::erf;
    case activation::elu_plus_one: return kernel::Unary::elu_plus_one;
    case activation::log: return kernel::Unary::log;
    case activation::softplus: return kernel::Unary::softplus;
    case activation::elu: return kernel::Unary::elu;
    case activation::squared_relu: return kernel::Unary::squared_relu;
    case activation::quick_gelu: return kernel::Unary::quick_gelu;
  }
  return kernel::Unary::identity;
}

template <class Arguments>
Arguments& Planner::step(std::int32_t n, const kernel::Kernel<Arguments>& kernel, double flops) {
  if (kernel.run == nullptr || kernel.plan == nullptr)
    fail(n, "backend '" + std::string(backend_) + "' has no kernel for " + std::string(name(g_.nodes[n].op)) +
                " on ISA '" + kernels_.isa + "'");
  Step& s = plan_.steps.emplace_back();
  s.node = n;
  s.name = full_name(g_, n, iterations_);
  s.flops = flops;
  s.call = Call<Arguments>{&kernel, {}};
  return std::get<Call<Arguments>>(s.call).arguments;
}

}  // namespace treadle::plan

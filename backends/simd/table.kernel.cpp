// Every kernel, for the ISA that TREADLE_ISA_TAG names, in the table TREADLE_ISA_TABLE. Compiled once per ISA with that
// ISA's flags; afterwards the table is the only symbol that other files see (cmake/isa.cmake).

#include <treadle/backends/simd/additive_scores.hpp>
#include <treadle/backends/simd/attention.hpp>
#include <treadle/backends/simd/attention_few.hpp>
#include <treadle/backends/simd/attention_probe.hpp>
#include <treadle/backends/simd/burn.hpp>
#include <treadle/backends/simd/copy.hpp>
#include <treadle/backends/simd/elementwise.hpp>
#include <treadle/backends/simd/embedding_sum.hpp>
#include <treadle/backends/simd/experts.hpp>
#include <treadle/backends/simd/gated_linear.hpp>
#include <treadle/backends/simd/linear.hpp>
#include <treadle/backends/simd/linear_attention.hpp>
#include <treadle/backends/simd/map.hpp>
#include <treadle/backends/simd/matmul.hpp>
#include <treadle/backends/simd/norms.hpp>
#include <treadle/backends/simd/pool.hpp>
#include <treadle/backends/simd/random_features.hpp>
#include <treadle/backends/simd/recurrent_attention.hpp>
#include <treadle/backends/simd/reductions.hpp>
#include <treadle/backends/simd/rope.hpp>
#include <treadle/backends/simd/softmax.hpp>
#include <treadle/backends/simd/tables.hpp>

namespace treadle::kernel {
namespace {

using Isa = simd::TREADLE_ISA_TAG;

constexpr Table make_table() {
  using namespace simd;
  return {
      .isa = Isa::name,
      .attention = {"attention", plan_attention<Isa>, run_attention<Isa>},
      .attention_few = {"attention_few", plan_attention_few<Isa>, run_attention_few<Isa>},
      .join_attention = {"join_attention", plan_join_attention<Isa>, run_join_attention<Isa>},
      .attention_probe = {"attention_probe", plan_attention_probe<Isa>, run_attention_probe<Isa>},
      .linear_attention_quadratic = {"linear_attention_quadratic", plan_linear_attention_quadratic<Isa>,
                                     run_linear_attention_quadratic<Isa>},
      .linear_attention = {"linear_attention_chunked", plan_linear_attention<Isa>, run_linear_attention<Isa>},
      .linear_attention_recurrent = {"linear_attention_recurrent", plan_linear_attention_recurrent<Isa>,
                                     run_linear_attention_recurrent<Isa>},
      .recurrent_attention = {"recurrent_attention_chunked", plan_recurrent_attention<Isa>,
                              run_recurrent_attention<Isa>},
      .recurrent_attention_recurrent = {"recurrent_attention_recurrent", plan_recurrent_attention_recurrent<Isa>,
                                        run_recurrent_attention_recurrent<Isa>},
      .linear = {"linear", plan_linear<Isa>, run_linear<Isa>},
      .matmul = {"matmul", plan_matmul<Isa>, run_matmul<Isa>},
      .layer_norm = {"layer_norm", plan_norm<Isa, LayerNorm>, run_layer_norm<Isa>},
      .rms_norm = {"rms_norm", plan_norm<Isa, RmsNorm>, run_rms_norm<Isa>},
      .softmax = {"softmax", plan_softmax<Isa>, run_softmax<Isa>},
      .log_softmax = {"log_softmax", plan_rows<Isa, LogSoftmax>, run_log_softmax<Isa>},
      .logsumexp = {"logsumexp", plan_rows<Isa, LogSumExp>, run_logsumexp<Isa>},
      .argmax = {"argmax", plan_rows<Isa, ArgMax>, run_argmax<Isa>},
      .cross_entropy = {"cross_entropy", plan_cross_entropy<Isa>, run_cross_entropy<Isa>},
      .pool = {"pool", plan_pool<Isa>, run_pool<Isa>},
      .elementwise = {"elementwise", plan_elementwise<Isa>, run_elementwise<Isa>},
      .map = {"map", plan_map<Isa>, run_map<Isa>},
      .combine = {"combine", plan_combine<Isa>, run_combine<Isa>},
      .copy = {"copy", plan_copy<Isa>, run_copy<Isa>},
      .embedding = {"embedding", plan_embedding<Isa>, run_embedding<Isa>},
      .add_layer_norm = {"add_layer_norm", plan_add_norm<Isa>, run_add_layer_norm<Isa>},
      .add_rms_norm = {"add_rms_norm", plan_add_norm<Isa>, run_add_rms_norm<Isa>},
      .embedding_sum = {"embedding_sum", plan_embedding_sum<Isa>, run_embedding_sum<Isa>},
      .gated_linear = {"gated_linear", plan_gated_linear<Isa>, run_gated_linear<Isa>},
      .rope = {"rope", plan_rope<Isa>, run_rope<Isa>},
      .additive_scores = {"additive_scores", plan_additive_scores<Isa>, run_additive_scores<Isa>},
      .random_features = {"random_features", plan_random_features<Isa>, run_random_features<Isa>},
      .expert_linear = {"expert_linear", plan_expert_linear<Isa>, run_expert_linear<Isa>},
      .mix_experts = {"mix_experts", plan_mix_experts<Isa>, run_mix_experts<Isa>},
      .packed_bytes = packed_bytes<Isa>,
      .pack = pack<Isa>,
      .fma_burn = fma_burn<Isa>,
  };
}

}  // namespace

constinit const Table TREADLE_ISA_TABLE = make_table();

}  // namespace treadle::kernel

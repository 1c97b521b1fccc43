#pragma once
// The kernel interface: what a kernel is given, and the table of kernels that each ISA provides.
//
// A kernel is three functions over one argument struct. `plan` says how many independent work items there are and how
// much workspace one thread needs; `run` computes items [first, last) with that workspace. Which thread runs which item
// never changes a result: every output element is computed by one item, in one fixed order. Kernels allocate nothing.
//
// Tensors are strided (graph/tensor.hpp, strides in elements). Kernels accept any strides on the outer dims and require
// a unit stride on the last dim of f32 operands unless stated; the planner inserts a `copy` where a caller's view does
// not have it.

#include <treadle/graph/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace treadle {

namespace mask {
class Tiles;  // graph/mask/tiles.hpp: which keys a strip of queries may see, tile by tile
}
namespace scalar {
struct TileProgram;  // graph/scalar/program.hpp: a traced score function, compiled for tiles
}

namespace kernel {

struct Work {
  std::size_t items = 0;                         ///< independent pieces; 0 = nothing to do
  std::size_t workspace_bytes = 0;               ///< for one thread, 64-byte aligned
  std::int64_t tile_queries = 0, tile_keys = 0;  ///< of kernels that go over a mask in tiles
};

/// A tile of scores, keys by lanes of queries, as attention holds it between its two products.
struct ScoreTile {
  const scalar::TileProgram* program = nullptr;  ///< bound to lengths and tables; its integers have 32 bits
  float* scores = nullptr;                       ///< [keys][ld]
  std::int64_t ld = 0;                           ///< 1 to 4 vectors
  std::int64_t b = 0, h = 0, q0 = 0, k0 = 0, keys = 0;
  const std::uint64_t* bits = nullptr;  ///< optional, one for each key: bit i set where lane i may see it
  float* top = nullptr;                 ///< [ld]
};
/// A score function compiled for one ISA: scores = score_mod(scores) · log2 e, −inf where the bit is 0; `top` grows to
/// the largest of each lane.
using ScoreHook = void (*)(const ScoreTile&);

/// out = softmax(score_mod(scale · q kᵀ + bias) where mask) v, tiled with online softmax; no N×N tensor exists.
/// A row without any allowed key: out 0, lse −inf. Masked keys and values never reach an output, NaN included.
struct Attention {
  TensorView q;     ///< [batch, heads, q_len, head_dim]
  TensorView k;     ///< [batch, kv_heads, k_len, head_dim]; query head h uses key head h / (heads / kv_heads)
  TensorView v;     ///< [batch, kv_heads, k_len, value_dim]
  TensorView out;   ///< [batch, heads, q_len, value_dim]
  TensorView lse;   ///< optional, f32 [batch, heads, q_len]: natural-log log-sum-exp of the row's scores
  TensorView bias;  ///< optional, f32 broadcast to [batch, heads, q_len, k_len], added after scaling; any strides
  TensorView sink;  ///< optional, f32 [heads]: one logit per head that joins the denominator only
  float scale = 1.0f;
  const scalar::TileProgram* score = nullptr;  ///< hook 1: score_mod, on each tile
  ScoreHook inlined = nullptr;                 ///< optional, the same function compiled for this ISA
  const mask::Tiles* mask = nullptr;           ///< hooks 2 and 3: the tile iterator and the bits of partial tiles
  /// attention_few only, optional, f32 [batch, heads, q_len, parts, value_dim + 2], unit stride on the last dim:
  /// written instead of out and lse. Part i is of keys [i, i + 1) · keys_of_a_part: Σ 2^(s − m) v, then m, their
  /// largest score in base 2, and Σ 2^(s − m). Parts are independent work.
  TensorView parts;
};
inline constexpr std::int64_t keys_of_a_part = 1024;

/// The parts of attention_few added up in their order, which is the same for any number of threads.
struct JoinAttention {
  TensorView parts, out, lse, sink;  ///< as in Attention
};

/// What attention's weights exp(score − lse) were, in one pass over its tiles. The tensors that are given are written.
struct AttentionProbe {
  Attention scores;             ///< as the attention was called, but without v and out; lse is read
  TensorView weights;           ///< [batch, heads, q_len, k_len]
  TensorView entropy;           ///< [batch, heads, q_len]: −Σ p ln p
  TensorView received;          ///< [batch, heads, k_len]: Σ over the queries, in double; an item is then a whole head
  TensorView indices, largest;  ///< i64 and f32 [batch, heads, q_len, k], unit stride on k: largest scores first, −1
                                ///< and 0 where there are fewer keys
};

/// exponentials: q and k hold exponents. Every feature of the keys is kept relative to its own largest exponent so far,
/// and every query relative to the largest sum of its exponent and that one; both cancel, and nothing that matters
/// overflows or underflows.
enum class Feature : std::uint8_t { elu_plus_one, relu, exponentials, identity };

/// Linear attention (Katharopoulos et al. 2020, eq. 4–9): out_i = φ(q_i) S / (φ(q_i)·z + eps), causal or over all keys;
/// the causal form works in chunks, or token by token. A zero denominator gives output 0.
struct LinearAttention {
  TensorView q, k, v, out;  ///< as in Attention
  /// optional, f32 [batch, heads, head_dim, value_dim + 1], unit stride on the last dim: S and z, read and updated in
  /// place. With exponentials one column more: the exponent that each row is relative to.
  TensorView state;
  TensorView key_lengths;  ///< optional, i32 [batch]
  Feature feature = Feature::elu_plus_one;
  bool causal = false;
  float eps = 0.0f;
  std::int32_t chunk = 0;  ///< 0: the kernel chooses
};

/// S = diag(exp g_t) S, u = v_t or, with beta, β_t (v_t − Sᵀ k_t), S = S + k_t uᵀ, out_t = scale · Sᵀ q_t: retention
/// (Sun et al. 2023), gated linear attention (Yang et al. 2024), the delta rule (Yang et al. 2024) and both together
/// (Yang et al. 2025). S has a row for each channel of the keys. A gate of −inf clears its row, NaN included.
struct RecurrentAttention {
  TensorView q, k, v, out;  ///< as in Attention, with k_len = q_len
  TensorView log_gate;      ///< optional, f32 [batch, heads, length, head_dim]; the last stride is 1 or 0
  TensorView beta;          ///< optional, f32 [batch, heads, length], any strides
  TensorView initial;       ///< optional, f32 [batch, heads, head_dim, value_dim]: S before; zeros without it
  TensorView state;         ///< optional: S after; may be the memory of `initial`
  float scale = 1.0f;
};

/// out = f(x), a traced function of one number.
struct Map {
  TensorView x, out;  ///< [rows, width]; may be the same memory
  const scalar::TileProgram* function = nullptr;
};

enum class Unary : std::uint8_t {
  identity,
  relu,
  gelu,
  gelu_tanh,
  silu,
  exp,
  tanh,
  erf,
  elu_plus_one,
  sigmoid,
  log,
  softplus,
  elu,
  squared_relu,
  quick_gelu,
  softcap,
  scale
};
enum class Norm : std::uint8_t { none, layer, rms };
enum class Binary : std::uint8_t { add, multiply };

/// Weights of a matrix product in the kernel's own order; made once at bind by `pack`. `bytes` comes from
/// `packed_bytes`.
struct PackedWeights {
  const float* data = nullptr;
  std::int64_t k = 0, n = 0;
};

/// out = act(a · w + bias) + residual, rows by packed weights.
struct Linear {
  TensorView a;         ///< [rows, k], unit stride on k
  PackedWeights w;      ///< k × n
  TensorView bias;      ///< optional [n]
  TensorView residual;  ///< optional [rows, n], unit stride on n; may be the memory of `out`
  TensorView out;       ///< [rows, n]
  Unary activation = Unary::identity;
};

/// out[b…] = alpha · a[b…] · b[b…]; batch dims broadcast by stride 0; any strides on a and b, unit stride on out's last
/// dim.
struct MatMul {
  TensorView a, b, out;  ///< rank 4: [batch, heads, m, k] · [batch, heads, k, n]
  float alpha = 1.0f;
};

/// Last-dim rows: out = (x − mean) / sqrt(var + eps) · gamma + beta (Ba et al. 2016), two-pass variance.
struct LayerNorm {
  TensorView x, gamma, beta, out;  ///< x, out [rows, width]; gamma, beta optional [width]
  float eps = 1e-5f;
};

/// out = x / sqrt(mean(x²) + eps) · gamma (Zhang and Sennrich 2019).
struct RmsNorm {
  TensorView x, gamma, out;
  float eps = 1e-6f;
};

/// sum = a + b, and out = its normalised rows, in one pass over memory. Layer norm or RMS norm of the same bits as the
/// kernels above give for the sum. The sum's rows may be the memory of a or b.
struct AddNorm {
  TensorView a, b, gamma, beta;  ///< a, b [rows, width]
  TensorView sum;                ///< optional
  TensorView out;
  float eps = 1e-5f;
};

/// Softmax over the last dim of [rows, width]; `mask` (bool, optional, same shape by strides, true keeps). An empty row
/// gives 0.
struct Softmax {
  TensorView x, mask, out;
};

/// out = x − logsumexp(x) over the last dim of [rows, width]. A row of −inf alone gives −inf.
struct LogSoftmax {
  TensorView x, out;
};

/// out = log Σ exp(x) over the last dim. A row of −inf alone, and an empty one, give −inf.
struct LogSumExp {
  TensorView x;    ///< [rows, width]
  TensorView out;  ///< [rows], any stride
};

/// Index of the first largest element of each row; NaN counts as larger than every number.
struct ArgMax {
  TensorView x;    ///< [rows, width], width ≥ 1
  TensorView out;  ///< i64 [rows], any stride
};

/// out[i] = logsumexp(logits[i, :]) − logits[i, ids[i]]; 0 where the id is `ignore_index`. Ids outside the vocabulary
/// give 0 and set *bad to 1.
struct CrossEntropy {
  TensorView logits;  ///< [rows, vocabulary]
  TensorView ids;     ///< i32 or i64 [rows], any stride
  TensorView out;     ///< [rows], any stride
  std::int64_t ignore_index = -100;
  std::int32_t* bad = nullptr;
};

enum class Pooling : std::uint8_t { mean, max };

/// out = mean or largest of x over its third dim, in the order of that dim: over the first `lengths` positions where
/// given. 0 over nothing; the largest is NaN if one is.
struct Pool {
  TensorView x;        ///< rank 4: [batch, heads, length, width], unit stride on width
  TensorView lengths;  ///< optional, i32 [batch, heads, 1, 1], any strides
  TensorView out;      ///< [batch, heads, 1, width], unit stride on width
  Pooling how = Pooling::mean;
};

struct Elementwise {
  TensorView x, out;  ///< [rows, width]
  Unary op = Unary::identity;
  float factor = 1.0f;  ///< of scale; elu's α; softcap's cap
};

struct Combine {
  TensorView a, b, out;  ///< rank 4, broadcast by stride 0 (any strides on a and b)
  Binary op = Binary::add;
};

/// Strided copy of any dtype, rank ≤ 6; equal shapes.
struct Copy {
  TensorView from, to;
};

/// out[i, :] = table[ids[i], :]. Ids outside the table give a row of zeros and set *bad to 1.
struct Embedding {
  TensorView ids;    ///< i32 or i64 [rows]
  TensorView table;  ///< [vocabulary, width]
  TensorView out;    ///< [rows, width]
  std::int32_t* bad = nullptr;
};

/// out[i, :] = norm(factor · table[ids[i], :] + rows[i mod period, :]), period = the number of rows. Ids outside the
/// table count as rows of zeros and set *bad to 1.
struct EmbeddingSum {
  TensorView ids;    ///< i32 or i64 [rows]
  TensorView table;  ///< [vocabulary, width]
  TensorView rows;   ///< [period, width]
  TensorView gamma, beta;
  TensorView out;
  float factor = 1.0f;
  Norm norm = Norm::none;
  float eps = 1e-5f;
  std::int32_t* bad = nullptr;
};

/// out = act(a · gate + gate_bias) · (a · up + up_bias) (Shazeer 2020, "GLU Variants Improve Transformer", eq. 5–6):
/// both products of a block of rows meet in registers, so neither is ever in memory.
struct GatedLinear {
  TensorView a;            ///< [rows, k], unit stride on k
  PackedWeights gate, up;  ///< k × n
  TensorView gate_bias, up_bias;
  TensorView out;
  Unary activation = Unary::identity;
};

/// Rotary positions: out = x·cos + partner·sin over the first rotary_dim channels, the other channels copied. The
/// partner of channel i is half the rotary channels away, or i ^ 1 if interleaved.
struct Rope {
  TensorView x;      ///< [batch, heads, length, head_dim]
  TensorView table;  ///< f32 [batch, length, 2·rotary_dim]: cosines, then sines with the sign of the channel's formula
  TensorView out;    ///< [batch, heads, length, head_dim]
  std::int64_t rotary_dim = 0;
  bool interleaved = false;
};

/// out[b, h, i, j] = v · tanh(q[b, h, i] + k[b, h, j]).
struct AdditiveScores {
  TensorView q, k;  ///< [batch, heads, n, width], [batch, heads, m, width]
  TensorView v;     ///< [width]
  TensorView out;   ///< [batch, heads, n, m]
};

/// out = scale·y − scale²·|x|²/2, where y = x · projectionᵀ.
struct RandomFeatures {
  TensorView x;       ///< [rows, head_dim]
  TensorView y, out;  ///< [rows, features]
  float scale = 1.0f;
};

/// out = act(a · w_e), e the expert of the row. Rows lie expert by expert; only they are computed.
struct ExpertLinear {
  TensorView a;                            ///< [tokens, k] with `source`, [rows, k] without
  TensorView source;                       ///< optional, i32 [rows]: the token of each row
  TensorView starts;                       ///< i32 [experts + 1]: expert e has the rows [starts[e], starts[e + 1])
  const PackedWeights* weights = nullptr;  ///< k × n, one for each expert
  std::int64_t experts = 0;
  TensorView out;  ///< [rows, n]
  Unary activation = Unary::identity;
  std::int64_t* computed = nullptr;  ///< optional: grows by the rows computed
};

/// out[t] = Σ_j weights[t, j] · y[rows[t, j]].
struct MixExperts {
  TensorView y;        ///< [tokens·top_k, width]
  TensorView rows;     ///< i32 [tokens, top_k]
  TensorView weights;  ///< [tokens, top_k]
  TensorView out;      ///< [tokens, width]
};

template <class Arguments>
struct Kernel {
  const char* name = nullptr;
  Work (*plan)(const Arguments&) = nullptr;
  void (*run)(const Arguments&, std::size_t first, std::size_t last, void* workspace) = nullptr;
};

/// One per ISA, constant-initialised: `extern const Table table_portable, table_avx2, table_avx512;`
struct Table {
  const char* isa;
  Kernel<Attention> attention;
  Kernel<Attention> attention_few;  ///< of one to four queries, without bias and score function
  Kernel<JoinAttention> join_attention;
  Kernel<AttentionProbe> attention_probe;
  Kernel<LinearAttention> linear_attention_quadratic;  ///< the same results without a state: for short sequences
  Kernel<LinearAttention> linear_attention;
  Kernel<LinearAttention> linear_attention_recurrent;        ///< token by token: for short sequences with a state
  Kernel<RecurrentAttention> recurrent_attention;            ///< in chunks
  Kernel<RecurrentAttention> recurrent_attention_recurrent;  ///< token by token
  Kernel<Linear> linear;
  Kernel<MatMul> matmul;
  Kernel<LayerNorm> layer_norm;
  Kernel<RmsNorm> rms_norm;
  Kernel<Softmax> softmax;
  Kernel<LogSoftmax> log_softmax;
  Kernel<LogSumExp> logsumexp;
  Kernel<ArgMax> argmax;
  Kernel<CrossEntropy> cross_entropy;
  Kernel<Pool> pool;
  Kernel<Elementwise> elementwise;
  Kernel<Map> map;
  Kernel<Combine> combine;
  Kernel<Copy> copy;
  Kernel<Embedding> embedding;
  Kernel<AddNorm> add_layer_norm;
  Kernel<AddNorm> add_rms_norm;
  Kernel<EmbeddingSum> embedding_sum;
  Kernel<GatedLinear> gated_linear;
  Kernel<Rope> rope;
  Kernel<AdditiveScores> additive_scores;
  Kernel<RandomFeatures> random_features;
  Kernel<ExpertLinear> expert_linear;
  Kernel<MixExperts> mix_experts;
  std::size_t (*packed_bytes)(std::int64_t k, std::int64_t n);
  /// `w` is [k, n] by any strides (a checkpoint's [out, in] is a transposed view).
  void (*pack)(const TensorView& w, float* packed);
  /// Runs independent FMAs for about the given number of iterations and returns the FLOPs done: the yardstick of
  /// `peak`.
  double (*fma_burn)(std::int64_t iterations);
};

/// Tables that this CPU can run, best first; the environment variable TREADLE_ISA (portable, avx2, avx512) caps the
/// choice.
const Table* find_table(const char* isa);  ///< nullptr if unknown or not supported here
const Table& best_table();
/// Names of every compiled ISA, best first, and whether this CPU has it.
struct IsaInfo {
  const char* name;
  bool compiled;
  bool supported;
};
inline constexpr int isa_count = 3;
const IsaInfo* isa_list();  ///< isa_count entries

}  // namespace kernel
}  // namespace treadle

#pragma once
// The list of ops and attribute keys: one line each. What an op means is in ops/.

#include <cstdint>
#include <string_view>

namespace treadle {

enum class op : std::uint8_t {
  // structure
  input,         ///< a tensor given at each run
  parameter,     ///< a tensor bound once; inside a repeat there is one per iteration
  state,         ///< storage that outlives a run: read by nodes, changed only through `append`
  constant,      ///< known when the model is declared: numbers in the graph's tables, or one for all elements
  region_input,  ///< the value that a repeat hands to its body
  repeat,        ///< runs a region `times` times
  output,        ///< names a result of the model
  // data movement
  append,  ///< (state, new, positions?): writes `new` at `offset` along `axis` and gives the rows [0, offset + n), or
           ///< where the positions say and gives all; in the state's storage
  embedding,  ///< (table, ids)
  gather,     ///< (x, ids): rows along `axis`
  positions,  ///< (table): the rows [offset, offset + length) of a learned table
  sinusoidal_positions,
  concatenate,  ///< along `axis`
  slice,        ///< [begin, begin + length) along `axis`
  transpose,    ///< `perm`
  reshape,      ///< the same elements in row-major order, in the shape of the output
  split_heads,  ///< [.., n, heads·d] → [.., heads, n, d]
  merge_heads,  ///< [.., heads, n, d] → [.., n, heads·d]
  // arithmetic
  add,
  multiply,
  scale,    ///< x · factor
  softcap,  ///< factor · tanh(x / factor)
  dropout,  ///< (x, keep): x / (1 − p) where kept, else 0
  linear,   ///< (x, weight [out, in], bias?, residual?)
  matmul,   ///< (a, b)
  activation,
  map,   ///< f(x), elementwise: a traced function
  rope,  ///< (x, positions?): rotary positions
  // over the last dim
  softmax,
  log_softmax,
  logsumexp,      ///< [.., n] → [..]
  argmax,         ///< [.., n] → [..], i64
  argsort,        ///< [.., n] → [.., n], i64: ascending, equal ones in order
  top_k_mask,     ///< [.., n] → [.., n], bool: the `top_k` largest
  cross_entropy,  ///< (logits [.., V], ids [..]) → [..] or one number
  pool,           ///< over the dim before the last: (x, key_lengths?) [.., n, d] → [.., d]; in runs of `length`
  // masks
  mask,           ///< a mask node: an expression over (b, h, q, k), a tensor, or both and'ed
  mask_to_bias,   ///< 0 where the mask keeps, −inf elsewhere
  select,         ///< (mask, x): x where the mask keeps, `value` elsewhere
  relative_bias,  ///< (table [buckets, heads]): what to add to scores, by the bucket of key − query
  // fused
  attention,        ///< (q, k, v, mask?, bias?, sink?) → out, lse
  attention_probe,  ///< (q, k, lse, mask?, bias?, sink?): what attention's weights were
  linear_attention,
  recurrent_attention,  ///< (q, k, v, log_gate?, beta?, state?) → out, state: retention, gated and delta rules
  additive_scores,      ///< (q, k, v): v·tanh(q_i + k_j)
  random_projection,    ///< (): orthogonal Gaussian rows, made at bind
  random_features,      ///< (x, projection): exponents of positive random features
  moe,                  ///< (x, router, up, down, gate?): mixture of experts
  layer_norm,           ///< (x, gamma?, beta?)
  rms_norm,             ///< (x, gamma?)
  add_layer_norm,       ///< (x, y, gamma?, beta?) → x + y, and its normalised rows
  add_rms_norm,         ///< (x, y, gamma?) → x + y, and its normalised rows
  embedding_sum,  ///< (table, ids, rows, gamma?, beta?): table rows by id + rows, normalised if `normalise` says so
  gated_linear,   ///< (x, gate weight, weight, gate bias?, bias?): function(x Wgᵀ + bg) · (x Wᵀ + b)
};

// clang-format off: one a line, in the order above
inline constexpr std::string_view op_names[] = {
    "input",
    "parameter",
    "state",
    "constant",
    "region_input",
    "repeat",
    "output",
    "append",
    "embedding",
    "gather",
    "positions",
    "sinusoidal_positions",
    "concatenate",
    "slice",
    "transpose",
    "reshape",
    "split_heads",
    "merge_heads",
    "add",
    "multiply",
    "scale",
    "softcap",
    "dropout",
    "linear",
    "matmul",
    "activation",
    "map",
    "rope",
    "softmax",
    "log_softmax",
    "logsumexp",
    "argmax",
    "argsort",
    "top_k_mask",
    "cross_entropy",
    "pool",
    "mask",
    "mask_to_bias",
    "select",
    "relative_bias",
    "attention",
    "attention_probe",
    "linear_attention",
    "recurrent_attention",
    "additive_scores",
    "random_projection",
    "random_features",
    "moe",
    "layer_norm",
    "rms_norm",
    "add_layer_norm",
    "add_rms_norm",
    "embedding_sum",
    "gated_linear",
};
// clang-format on
inline constexpr int op_count = static_cast<int>(sizeof(op_names) / sizeof(op_names[0]));
static_assert(op_count == static_cast<int>(op::gated_linear) + 1);

constexpr std::string_view name(op o) { return op_names[static_cast<int>(o)]; }

/// Functions of one number; what each computes is in ops/elementwise.hpp.
enum class activation : std::uint8_t {
  none,
  relu,
  gelu,
  gelu_tanh,
  silu,
  sigmoid,
  tanh,
  exp,
  erf,
  elu_plus_one,
  log,
  softplus,
  elu,
  squared_relu,
  quick_gelu
};
inline constexpr std::string_view activation_names[] = {"none",    "relu",     "gelu", "gelu_tanh",    "silu",
                                                        "sigmoid", "tanh",     "exp",  "erf",          "elu_plus_one",
                                                        "log",     "softplus", "elu",  "squared_relu", "quick_gelu"};
inline constexpr int activation_count = static_cast<int>(sizeof(activation_names) / sizeof(activation_names[0]));
static_assert(activation_count == static_cast<int>(activation::quick_gelu) + 1);
constexpr std::string_view name(activation a) { return activation_names[static_cast<int>(a)]; }

/// How many values become one.
enum class reduction : std::uint8_t { none, sum, mean, max, first };
inline constexpr std::string_view reduction_names[] = {"none", "sum", "mean", "max", "first"};
inline constexpr int reduction_count = static_cast<int>(sizeof(reduction_names) / sizeof(reduction_names[0]));
static_assert(reduction_count == static_cast<int>(reduction::first) + 1);
constexpr std::string_view name(reduction r) { return reduction_names[static_cast<int>(r)]; }

/// Which channels of a head make a pair: (i, i + dim/2), or (2i, 2i + 1).
enum class rope_layout : std::uint8_t { half, interleaved };
inline constexpr std::string_view rope_layout_names[] = {"half", "interleaved"};
constexpr std::string_view name(rope_layout l) { return rope_layout_names[static_cast<int>(l)]; }

/// How rotary frequencies are changed for sequences longer than those trained on (ops/rotary.hpp).
enum class rope_scaling : std::uint8_t { none, linear, ntk, dynamic_ntk, yarn, llama3 };
inline constexpr std::string_view rope_scaling_names[] = {"none", "linear", "ntk", "dynamic_ntk", "yarn", "llama3"};
constexpr std::string_view name(rope_scaling s) { return rope_scaling_names[static_cast<int>(s)]; }

/// What a probe reports of attention's weights (ops/attention_probe.hpp).
enum class probe : std::uint8_t { weights, entropy, column_sums, top_k };
inline constexpr std::string_view probe_names[] = {"weights", "entropy", "column_sums", "top_k"};
constexpr std::string_view name(probe p) { return probe_names[static_cast<int>(p)]; }

/// Attribute keys. The comment gives the kind of the value.
enum class key : std::uint8_t {
  times,         ///< integer: iterations of a repeat
  carried,       ///< integer: values handed from iteration to iteration
  captured,      ///< integer: outer values that every iteration sees
  states,        ///< integer: stacked states, one slice per iteration
  sides,         ///< integer: side outputs, stacked over the iterations
  region,        ///< integer: the body
  index,         ///< integer: which region input
  axis,          ///< integer
  begin,         ///< dim
  length,        ///< dim
  offset,        ///< dim
  batch_dims,    ///< integer: leading dims that x and the ids of a gather share
  perm,          ///< integer: the axes as base-8 digits, first axis lowest
  heads,         ///< integer
  kv_heads,      ///< integer
  factor,        ///< number
  scale,         ///< number: of q·k
  eps,           ///< number
  base,          ///< number
  value,         ///< number
  p,             ///< number: the probability to drop
  alpha,         ///< number
  function,      ///< integer: an `activation`
  reduction,     ///< integer: a `reduction`
  ignore_index,  ///< integer: an id that counts for nothing
  causal,        ///< integer: 0 or 1
  has_weight,    ///< integer: optional inputs that are given
  has_bias,
  has_residual,
  has_mask,
  has_sink,
  has_tensor,  ///< integer: the mask node's first input is a tensor
  expression,  ///< scalar: root in the scalar pool (mask or score)
  data,        ///< numbers of a constant
  b_len,       ///< dim: of a mask that depends on the batch element
  h_len,       ///< dim: of a mask that depends on the head
  q_len,       ///< dim
  k_len,       ///< dim
  normalise,   ///< integer: 0 no, 1 layer norm, 2 RMS norm
  layout,      ///< integer: a `rope_layout`
  rotary_dim,  ///< integer: the channels that rotate
  has_positions,
  has_gate,
  has_beta,
  has_state,
  top_k,            ///< integer: experts of a token; elements that are kept
  renormalise,      ///< integer: 0 or 1
  features,         ///< integer
  head_dim,         ///< integer
  seed,             ///< integer
  scaling,          ///< integer: a `rope_scaling`
  original_length,  ///< integer: positions that a model was trained on
  low,              ///< number: bounds of a scaling's ramp, in turns
  high,             ///< number
  magnitude,        ///< number: of cosines and sines
  probe,            ///< integer: a `probe`
  max_distance,     ///< integer
  top_left,         ///< integer: 1 if positions count from the first key
};
// clang-format off: one a line, in the order above
inline constexpr std::string_view key_names[] = {
    "times",
    "carried",
    "captured",
    "states",
    "sides",
    "region",
    "index",
    "axis",
    "begin",
    "length",
    "offset",
    "batch_dims",
    "perm",
    "heads",
    "kv_heads",
    "factor",
    "scale",
    "eps",
    "base",
    "value",
    "p",
    "alpha",
    "function",
    "reduction",
    "ignore_index",
    "causal",
    "has_weight",
    "has_bias",
    "has_residual",
    "has_mask",
    "has_sink",
    "has_tensor",
    "expression",
    "data",
    "b_len",
    "h_len",
    "q_len",
    "k_len",
    "normalise",
    "layout",
    "rotary_dim",
    "has_positions",
    "has_gate",
    "has_beta",
    "has_state",
    "top_k",
    "renormalise",
    "features",
    "head_dim",
    "seed",
    "scaling",
    "original_length",
    "low",
    "high",
    "magnitude",
    "probe",
    "max_distance",
    "top_left",
};
// clang-format on
inline constexpr int key_count = static_cast<int>(sizeof(key_names) / sizeof(key_names[0]));
static_assert(key_count == static_cast<int>(key::top_left) + 1);
constexpr std::string_view name(key k) { return key_names[static_cast<int>(k)]; }

}  // namespace treadle

#pragma once
// Reference formulas of the ops, defined in ops/*.cpp for T = float and double. Plain, allocating, one value at a time:
// they say what an op means. Shapes are checked by whoever calls (the shape rules in ops/*.hpp, the reference backend).

#include <treadle/graph/op.hpp>
#include <treadle/ops/position_tables.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace treadle::reference {

/// A row-major tensor. Integers and booleans are held as T too.
template <class T>
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<T> data;

  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t size() const { return static_cast<std::int64_t>(data.size()); }
  bool operator==(const Array&) const = default;
};

std::int64_t elements(const std::vector<std::int64_t>& shape);
template <class T>
Array<T> zeros(std::vector<std::int64_t> shape) {
  const auto n = static_cast<std::size_t>(elements(shape));
  return {std::move(shape), std::vector<T>(n)};
}

// --- elementwise.cpp
template <class T>
Array<T> add(const Array<T>& a, const Array<T>& b);
template <class T>
Array<T> multiply(const Array<T>& a, const Array<T>& b);
template <class T>
Array<T> scale(const Array<T>& x, double factor);
/// c · tanh(x / c)
template <class T>
Array<T> softcap(const Array<T>& x, double c);
/// x / (1 − p) where `keep` (broadcasts to x) is not 0, else 0
template <class T>
Array<T> dropout(const Array<T>& x, const Array<T>& keep, double p);
/// `alpha` is elu's.
template <class T>
T activate(T x, activation function, double alpha = 1);
template <class T>
Array<T> activate(const Array<T>& x, activation function, double alpha = 1);

// --- embedding.cpp. Ids and positions outside the table throw std::out_of_range.
template <class T>
Array<T> embedding(const Array<T>& table, const Array<T>& ids);
template <class T>
Array<T> positions(const Array<T>& table, std::int64_t offset, std::int64_t length);
template <class T>
Array<T> sinusoidal_positions(std::int64_t offset, std::int64_t length, std::int64_t width, double base);

// --- gather.cpp. Ids outside the axis throw std::out_of_range.
template <class T>
Array<T> gather(const Array<T>& x, const Array<T>& ids, std::int64_t axis, std::int64_t batch_dims);

// --- pool.cpp. The first of 0 tokens throws std::invalid_argument.
template <class T>
Array<T> pool(const Array<T>& x, const Array<T>* key_lengths, reduction how);
template <class T>
Array<T> pool_runs(const Array<T>& x, std::int64_t each, reduction how);

// --- layout.cpp
template <class T>
Array<T> transpose(const Array<T>& x, const std::vector<int>& perm);
template <class T>
Array<T> split_heads(const Array<T>& x, std::int64_t heads);
template <class T>
Array<T> merge_heads(const Array<T>& x);
template <class T>
Array<T> concatenate(const std::vector<const Array<T>*>& parts, int axis);
template <class T>
Array<T> slice(const Array<T>& x, int axis, std::int64_t begin, std::int64_t length);
/// Writes `rows` into `state` at `offset` along `axis` and gives the rows [0, offset + n).
template <class T>
Array<T> append(Array<T>& state, const Array<T>& rows, int axis, std::int64_t offset);
/// Positions outside the state but −1 throw std::out_of_range.
template <class T>
Array<T> append(Array<T>& state, const Array<T>& rows, int axis, const Array<T>& positions);

// --- linear.cpp
template <class T>
Array<T> linear(const Array<T>& x, const Array<T>& weight, const Array<T>* bias = nullptr,
                const Array<T>* residual = nullptr, activation function = activation::none);
template <class T>
Array<T> matmul(const Array<T>& a, const Array<T>& b);

// --- norm.cpp
template <class T>
Array<T> layer_norm(const Array<T>& x, const Array<T>* gamma, const Array<T>* beta, double eps);
template <class T>
Array<T> rms_norm(const Array<T>& x, const Array<T>* gamma, double eps);

// --- softmax.cpp. Over the last dim.
template <class T>
Array<T> softmax(const Array<T>& x);
template <class T>
Array<T> log_softmax(const Array<T>& x);
template <class T>
Array<T> logsumexp(const Array<T>& x);
/// Throws std::invalid_argument if the last dim is empty.
template <class T>
Array<T> argmax(const Array<T>& x);
/// Ids outside the logits throw std::out_of_range.
template <class T>
Array<T> cross_entropy(const Array<T>& logits, const Array<T>& ids, reduction how, std::int64_t ignore_index);

// --- sort.cpp. Over the last dim.
template <class T>
Array<T> argsort(const Array<T>& x);
template <class T>
Array<T> top_k_mask(const Array<T>& x, std::int64_t k);

// --- mask.cpp. Masks: not 0 keeps.
using Position = std::function<bool(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)>;
/// A mask of the given shape [B, H, N, M] from an expression, a tensor that broadcasts from the right, or both and'ed.
template <class T>
Array<T> mask(const std::vector<std::int64_t>& shape, const Position& expression, const Array<T>* tensor);
template <class T>
Array<T> mask_to_bias(const Array<T>& mask);
/// x where the mask keeps, `value` elsewhere; both broadcast.
template <class T>
Array<T> select(const Array<T>& mask, const Array<T>& x, double value);

// --- attention.cpp
template <class T>
struct AttentionInputs {
  const Array<T>& q;               ///< [B, H, N, D]
  const Array<T>& k;               ///< [B, Hkv, M, D]
  const Array<T>& v;               ///< [B, Hkv, M, Dv]
  const Array<T>* mask = nullptr;  ///< broadcasts to [B, H, N, M]
  const Array<T>* bias = nullptr;  ///< broadcasts to [B, H, N, M]
  const Array<T>* sink = nullptr;  ///< [H]
  double scale = 1;
  /// score_mod, applied to scale·q·k + bias; empty: none
  std::function<T(T score, std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k)> score = {};
};
template <class T>
struct AttentionOutputs {
  Array<T> out;  ///< [B, H, N, Dv]
  Array<T> lse;  ///< [B, H, N]
};
template <class T>
AttentionOutputs<T> attention(const AttentionInputs<T>& in);

// --- attention_probe.cpp. `in.v` is not read.
template <class T>
struct AttentionProbe {
  Array<T> weights;           ///< [B, H, N, M]
  Array<T> entropy;           ///< [B, H, N]
  Array<T> column_sums;       ///< [B, H, M]
  Array<T> indices, largest;  ///< [B, H, N, top_k]
};
/// Of the weights exp(score − lse), with a sink exp(score − log(exp(lse) + exp(sink))); what `what` does not ask for
/// stays empty.
template <class T>
AttentionProbe<T> attention_probe(const AttentionInputs<T>& in, const Array<T>& lse, probe what, std::int64_t top_k);

// --- relative_bias.cpp
/// [1, heads, q_len, k_len]: table [buckets, heads] at the bucket of key − query, the last query at the last key unless
/// top_left.
template <class T>
Array<T> relative_bias(const Array<T>& table, std::int64_t q_len, std::int64_t k_len, const RelativeBuckets& buckets,
                       bool top_left);

// --- linear_attention.cpp
/// `state` [B, H, D, Dv + 1], where given, is what earlier keys left; it becomes what all keys leave. With exponents it
/// has one column more: the exponent that each row is relative to.
template <class T>
Array<T> linear_attention(const Array<T>& q, const Array<T>& k, const Array<T>& v, const Array<T>* key_lengths,
                          activation feature, bool causal, double eps, Array<T>* state = nullptr);

// --- recurrent_attention.cpp
template <class T>
struct RecurrentInputs {
  const Array<T>& q;                   ///< [B, H, N, D]
  const Array<T>& k;                   ///< [B, Hkv, N, D]
  const Array<T>& v;                   ///< [B, Hkv, N, Dv]
  const Array<T>* log_gate = nullptr;  ///< broadcasts to [B, H, N, D]
  const Array<T>* beta = nullptr;      ///< [B, H, N]
  double scale = 1;
};
/// `state` [B, H, D, Dv] is what earlier tokens left; it becomes what all tokens leave.
template <class T>
Array<T> recurrent_attention(const RecurrentInputs<T>& in, Array<T>& state);

// --- rotary.cpp
template <class T>
Array<T> rope(const Array<T>& x, const Array<T>* positions, const RotaryAngles& angles, rope_layout layout,
              std::int64_t offset);

// --- score_attention.cpp
template <class T>
Array<T> additive_scores(const Array<T>& q, const Array<T>& k, const Array<T>& v);

// --- favor.cpp
template <class T>
Array<T> random_projection(std::int64_t features, std::int64_t head_dim, std::int64_t seed);
template <class T>
Array<T> random_features(const Array<T>& x, const Array<T>& projection, double scale);

// --- experts.cpp
template <class T>
Array<T> moe(const Array<T>& x, const Array<T>& router, const Array<T>& up, const Array<T>& down, const Array<T>* gate,
             std::int64_t top_k, bool renormalise, activation function);

}  // namespace treadle::reference

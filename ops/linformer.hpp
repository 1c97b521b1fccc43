#pragma once
// Linformer: keys and values projected along the length (Wang et al. 2020).

#include <treadle/ops/partial_attention.hpp>

namespace treadle {

struct LinformerOptions {
  std::int64_t length = 256;      ///< of the projected keys and values, the paper's k
  std::int64_t max_length = 512;  ///< the longest sequence of keys, the paper's n
  bool shared = false;            ///< one matrix for keys and values (§4, "key-value sharing")
  Node key_projection{};          ///< [length, max_length] or [heads, length, max_length]; given, it takes the place of
                                  ///< the parameter: "layerwise sharing" hands one to all layers
  Node value_projection{};        ///< the same for values
  std::optional<double> scale{};  ///< default 1 / sqrt(head_dim)
};

/// softmax(scale · q (E k)ᵀ) (F v), E and F [length, max_length] (Wang et al. 2020, eq. 7). Shapes as in attention;
/// with M keys the first M columns of E and F are used, so shorter sequences need no padding, and more than max_length
/// keys are an error. Parameters `leaf`.key_projection and `leaf`.value_projection, the same for all heads ("headwise
/// sharing"). Every output depends on all keys: there is no causal form and no mask over keys. Costs N·length pairs and
/// M·length·(D + Dv) for the projections; memory is linear in N + M.
constexpr Node linformer_attention(std::string_view leaf, Node q, Node k, Node v, LinformerOptions o = {},
                                   Where where = Where::current()) {
  Builder& b = *q.builder;
  if (!rule::fits_attention(b, q, k, v, leaf, where)) return {&b, {}};
  if (o.length < 1 || o.max_length < 1) {
    b.fail(op::attention, leaf,
           {error_kind::bad_attribute,
            Text("a projection of ").append(o.max_length).append(" keys to ").append(o.length), "at least 1 of each"},
           where.line());
    return {&b, {}};
  }
  const auto projection = [&](Node given, const char* name) {
    if (given.builder != nullptr) return given;
    return b.parameter(name, {b.dim_number(o.length), b.dim_number(o.max_length)}, where);
  };
  b.push_scope(leaf);
  const Node e = projection(o.key_projection, "key_projection");
  Node f = e;
  if (!o.shared) f = projection(o.value_projection, "value_projection");
  b.pop_scope();
  const Dim keys = b.shape(k)[2], start = b.dim_number(0);
  const auto project = [&](Node matrix, Node x) {
    if (!b.usable(matrix)) return matrix;
    const auto rank = static_cast<std::int64_t>(b.shape(matrix).size());
    if (rank < 2) {
      b.fail(op::attention, leaf,
             {error_kind::wrong_rank, shape_text(b.graph(), b.shape(matrix)), "[length, max_length]"}, where.line());
      return Node{&b, {}};
    }
    return matmul(slice_to(matrix, rank - 1, start, keys, where), x, where);
  };
  const Node projected_k = project(e, k), projected_v = project(f, v);
  if (!b.usable(projected_k) || !b.usable(projected_v)) return {&b, {}};
  AttentionOptions a;
  a.scale = o.scale;
  return attention(q, projected_k, projected_v, a, where);
}

}  // namespace treadle

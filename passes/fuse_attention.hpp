#pragma once
// Attention that is written out becomes the attention node, so that no scores matrix exists.
//
//   %3 = transpose (%1) {perm=[0, 1, 3, 2]}
//   %4 = matmul (%0, %3)
//   %5 = scale (%4) {factor=0.125}
//   %6 = mask_to_bias (%m)                     →   %3 = attention (%0, %1, %2, %m) {scale=0.125, has_mask=1, …}
//   %7 = add (%5, %6)
//   %8 = softmax (%7)
//   %9 = matmul (%8, %2)
//
// Between the first product and the softmax may stand, in any order and number: scale by a positive factor, addition of
// a mask's bias, selection by a mask with −inf, addition of an f32 tensor. Scales may also stand on q, on k, or on its
// transpose. The first mask becomes the node's mask; everything else that is added becomes its bias, multiplied by the
// scales that came after it. Operands of rank 2 and 3 get heads (and a batch) of size 1. What disappears must have no
// other reader.

#include <treadle/ops/rule.hpp>
#include <treadle/passes/remove_dead_nodes.hpp>

#include <limits>

namespace treadle {
namespace written_out {

/// What stands between q, k and the softmax. Values of the old graph.
struct Scores {
  Value q, keys;     ///< keys: [.., d, m]
  double scale = 1;  ///< of q·k
  Value mask;        ///< boolean, or not valid
  struct Term {
    Value value;
    double factor = 1;
    bool mask = false;  ///< a further mask, to be added as a bias
  };
  std::vector<Term> bias;
  std::int32_t product = -1;
};

constexpr bool positive(double x) { return x > 0 && x < std::numeric_limits<double>::infinity(); }

/// Strips scales; their factors multiply `factor`. The value below is read in place of v, which other nodes may go on
/// reading.
constexpr Value strip_scales(Rewriter& r, Value v, double& factor) {
  while (r.is(v, op::scale)) {
    factor *= r.old().get_number(v.node, key::factor, 1);
    v = r.input(v.node, 0);
  }
  return v;
}

constexpr void add_mask(Scores& s, Value mask) {
  if (s.mask.valid())
    s.bias.push_back({mask, 1, true});
  else
    s.mask = mask;
}

/// The scores below the softmax's input `v`, layer by layer; false if they are no written-out attention.
constexpr bool match_scores(Rewriter& r, Value v, Scores& s) {
  const Value scores = v;
  double after = 1;  // scales between here and the softmax
  for (;;) {
    if (!r.single_use(v) || v.output != 0 || !r.same_shape(v, scores)) return false;
    const std::int32_t n = v.node;
    switch (r.op_of(v)) {
      case op::scale: {
        const double factor = r.old().get_number(n, key::factor, 1);
        if (!positive(factor)) return false;
        after *= factor;
        v = r.input(n, 0);
        continue;
      }
      case op::select:
        if (r.old().get_number(n, key::value) != -std::numeric_limits<double>::infinity()) return false;
        add_mask(s, r.input(n, 0));
        v = r.input(n, 1);
        continue;
      case op::add: {
        // The side that leads to the product goes on; the other is a mask or a bias.
        const Value a = r.input(n, 0), b = r.input(n, 1);
        const auto leads = [&](Value x) {
          return r.single_use(x) && r.same_shape(x, scores) &&
                 (r.op_of(x) == op::matmul || r.op_of(x) == op::scale || r.op_of(x) == op::select ||
                  r.op_of(x) == op::add);
        };
        const bool first = leads(a) && !(leads(b) && r.op_of(a) != op::matmul && r.op_of(b) == op::matmul);
        if (!first && !leads(b)) return false;
        const Value other = first ? b : a;
        if (r.is(other, op::mask_to_bias))
          add_mask(s, r.input(other.node, 0));
        else
          s.bias.push_back({other, after, false});
        v = first ? a : b;
        continue;
      }
      case op::matmul:
        s.scale = after;
        s.q = strip_scales(r, r.input(n, 0), s.scale);
        s.keys = strip_scales(r, r.input(n, 1), s.scale);
        s.product = n;
        return true;
      default: return false;
    }
  }
}

constexpr std::int64_t swap_last_two(std::size_t rank) {
  std::int64_t code = 0, place = 1;
  for (std::size_t i = 0; i < rank; ++i, place *= 8)
    code += place * static_cast<std::int64_t>(i + 2 < rank ? i : i + 2 == rank ? i + 1 : i - 1);
  return code;
}

/// The ranks and dims that the attention node needs: equal batch, key heads equal to query heads or 1.
constexpr bool shapes_fit(Rewriter& r, const Scores& s, Value v) {
  const std::vector<Dim> q = r.shape(s.q), k = r.shape(s.keys), values = r.shape(v), scores = r.shape({s.product, 0});
  const std::size_t rank = q.size();
  if (rank < 2 || rank > 4 || k.size() != rank || values.size() != rank || scores.size() != rank) return false;
  const Dim unit = r.graph().dims.number(1);
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (k[i] != values[i] || scores[i] != q[i]) return false;
    const bool heads = rank == 4 && i == 1;
    if (k[i] != q[i] && !(heads && k[i] == unit)) return false;
  }
  if (s.mask.valid() && r.shape(s.mask).size() != 4) return false;
  for (const Scores::Term& t : s.bias)
    if (t.mask && rank != 4) return false;
  return true;
}

constexpr Value reshaped(Rewriter& r, std::int32_t n, op o, Value v, const std::vector<Dim>& shape) {
  NodeSpec s = r.beside(n, o);
  s.inputs.push_back(v);
  if (o == op::split_heads) s.attributes.push_back(integer(key::heads, 1));
  s.outputs.push_back({f32, shape});
  return r.add(s);
}

/// [.., n, d] → [1, 1, n, d] or [b, 1, n, d]. Leading dims of size 1 are put before the last two.
constexpr Value to_rank_4(Rewriter& r, std::int32_t n, Value v, std::vector<Dim> shape) {
  while (shape.size() < 4) {
    shape.insert(shape.end() - 2, r.graph().dims.number(1));
    v = reshaped(r, n, op::split_heads, v, shape);
  }
  return v;
}

/// The other way: `x` of `shape` with the `rank` that the result had.
constexpr Value from_rank_4(Rewriter& r, std::int32_t n, Value x, std::vector<Dim> shape, std::size_t rank) {
  for (std::size_t left = 4; left > rank; --left) {
    shape.erase(shape.end() - 3);
    x = reshaped(r, n, op::merge_heads, x, shape);
  }
  return x;
}

/// k [.., m, d] from keys [.., d, m]: what was transposed, or a transpose of it.
constexpr Value untransposed(Rewriter& r, std::int32_t n, const Scores& s, double& factor, std::vector<Dim>& shape) {
  shape = r.shape(s.keys);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  const std::int64_t swap = swap_last_two(shape.size());
  if (r.is(s.keys, op::transpose) && r.old().get_integer(s.keys.node, key::perm) == swap)
    return r.map(strip_scales(r, r.input(s.keys.node, 0), factor));
  NodeSpec t = r.beside(n, op::transpose);
  t.attributes.push_back(integer(key::perm, swap));
  t.inputs.push_back(r.map(s.keys));
  t.outputs.push_back({f32, shape});
  return r.add(t);
}

/// The sum of everything that is added to the scores, or an invalid value.
constexpr Value sum_of_biases(Rewriter& r, std::int32_t n, const Scores& s, std::size_t rank) {
  Value sum;
  std::vector<Dim> sum_shape;
  for (const Scores::Term& t : s.bias) {
    Value v = r.map(t.value);
    std::vector<Dim> shape = r.shape(t.value);
    if (t.mask) {
      v = reshaped(r, n, op::mask_to_bias, v, shape);
    } else if (t.factor != 1) {
      NodeSpec scaled = r.beside(n, op::scale);
      scaled.inputs.push_back(v);
      scaled.attributes.push_back(number(key::factor, t.factor));
      scaled.outputs.push_back({f32, shape});
      v = r.add(scaled);
    }
    if (rank == 3 && shape.size() == 3) {  // [b, n, m] must not be read as [heads, n, m]
      shape.insert(shape.begin() + 1, r.graph().dims.number(1));
      v = reshaped(r, n, op::split_heads, v, shape);
    }
    if (!sum.valid()) {
      sum = v;
      sum_shape = shape;
      continue;
    }
    NodeSpec added = r.beside(n, op::add);
    added.inputs.push_back(sum);
    added.inputs.push_back(v);
    std::vector<Dim> both;
    rule::broadcast(r.graph(), sum_shape, shape, both);
    added.outputs.push_back({f32, both});
    sum = r.add(added);
    sum_shape = both;
  }
  return sum;
}

constexpr bool replace_attention(Rewriter& r, std::int32_t n) {
  if (!r.is({n, 0}, op::matmul) || !r.is_single(r.input(n, 0), op::softmax)) return false;
  Scores s;
  const Value v = r.input(n, 1);
  if (!match_scores(r, r.input(r.input(n, 0).node, 0), s) || !shapes_fit(r, s, v)) return false;
  // What is read moves down to where the result stands; an append in between would change a state that is read
  // directly.
  if (r.is_state(s.q) || r.is_state(s.keys) || r.is_state(v)) return false;

  std::vector<Dim> k_shape;
  const std::vector<Dim> q_shape = r.shape(s.q), v_shape = r.shape(v);
  const std::size_t rank = q_shape.size();
  const Value k = untransposed(r, n, s, s.scale, k_shape);
  NodeSpec a = r.beside(n, op::attention);
  a.leaf = r.old().nodes[n].leaf;
  a.inputs.push_back(to_rank_4(r, n, r.map(s.q), q_shape));
  a.inputs.push_back(to_rank_4(r, n, k, k_shape));
  a.inputs.push_back(to_rank_4(r, n, r.map(v), v_shape));
  if (s.mask.valid()) a.inputs.push_back(r.map(s.mask));
  const Value bias = sum_of_biases(r, n, s, rank);
  if (bias.valid()) a.inputs.push_back(bias);
  a.attributes.push_back(number(key::scale, s.scale));
  a.attributes.push_back(integer(key::has_mask, s.mask.valid()));
  a.attributes.push_back(integer(key::has_bias, bias.valid()));
  a.attributes.push_back(integer(key::has_sink, 0));

  std::vector<Dim> out = r.shape({n, 0}), lse;
  while (out.size() < 4) out.insert(out.end() - 2, r.graph().dims.number(1));
  for (int i = 0; i < 3; ++i) lse.push_back(out[static_cast<std::size_t>(i)]);
  a.outputs.push_back({f32, out});
  a.outputs.push_back({f32, lse});
  r.replace({n, 0}, from_rank_4(r, n, r.add(a), out, rank));
  return true;
}

}  // namespace written_out

constexpr Graph fuse_attention(Graph g, PassReport* report = nullptr) {
  if (g.count(op::softmax) == 0) return nothing_to_do(std::move(g), "fuse_attention", report);
  return rewrite_and_sweep(std::move(g), "fuse_attention", report,
                           [](Rewriter& r, std::int32_t n) { return written_out::replace_attention(r, n); });
}

}  // namespace treadle

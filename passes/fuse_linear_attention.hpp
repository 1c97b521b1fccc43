#pragma once
// Linear attention that is written out becomes its node, so that no scores matrix exists and the form can follow the
// lengths (Katharopoulos et al. 2020, eq. 4 to 9).
//
//   %fq = activation (%q) {function=elu_plus_one}
//   %fk = activation (%k) {function=elu_plus_one}
//   %t = transpose (%fk) {perm=[0, 1, 3, 2]}
//   %a = matmul (%fq, %t)
//   %s = select (%causal, %a) {value=0}              →   %y = linear_attention (%q, %k, %v) {causal=1, eps=0, …}
//   %n = matmul (%s, %v)
//   %d = matmul (%s, %ones)
//   %r = exp(−log(%d))
//   %y = multiply (%n, %r)
//
// Without the selection it is not causal; then the products may also stand the other way round, %n = matmul (%fq,
// matmul (%t, %v)) and %d = matmul (%fq, matmul (%t, %ones)). The reciprocal is written with the ops that there are:
// exp of a scale by −1 of log. A constant that is added to the denominator becomes eps. The feature maps elu_plus_one
// and relu, the same on both sides, go into the node; any other φ stays as it is, and the node takes φ(q) and φ(k)
// (function=none): a map, random features behind exp, whatever made them. Where a query sees no key, or the denominator
// is 0, the node gives 0; the written form gives NaN.

#include <treadle/graph/mask/masks.hpp>
#include <treadle/passes/fuse_attention.hpp>

namespace treadle {
namespace written_out {

/// A constant with one number for all elements.
constexpr bool is_full(Rewriter& r, Value v, double& number) {
  if (!r.is(v, op::constant) || r.old().find(v.node, key::value) == nullptr) return false;
  number = r.old().get_number(v.node, key::value);
  return true;
}

/// [.., m, 1] full of ones.
constexpr bool is_column_of_ones(Rewriter& r, Value v) {
  double number = 0;
  return is_full(r, v, number) && number == 1 && r.shape(v).back() == r.graph().dims.number(1);
}

constexpr bool is_function(Rewriter& r, Value v, activation f) {
  return r.is(v, op::activation) && r.old().get_integer(v.node, key::function) == static_cast<std::int64_t>(f);
}

/// The denominator d of exp(−log(d)), where nothing else reads what is in between; an invalid value otherwise.
constexpr Value denominator_of(Rewriter& r, Value v) {
  if (!is_function(r, v, activation::exp) || !r.single_use(v)) return {};
  v = r.input(v.node, 0);
  if (!r.is_single(v, op::scale) || r.old().get_number(v.node, key::factor) != -1) return {};
  v = r.input(v.node, 0);
  if (!is_function(r, v, activation::log) || !r.single_use(v)) return {};
  return r.input(v.node, 0);
}

struct Linear {
  Value q, k, v;  ///< before the feature map, if it is a named one
  std::int64_t feature = 0;
  double eps = 0;
  bool causal = false;
};

/// φ(q) and φ(k)ᵀ: both sides of one named φ, or as they are.
constexpr bool match_sides(Rewriter& r, Value queries, Value keys, Linear& l) {
  if (!r.is(keys, op::transpose) ||
      r.old().get_integer(keys.node, key::perm) != swap_last_two(r.old().shape(keys).size()))
    return false;
  l.q = queries;
  l.k = r.input(keys.node, 0);
  for (const activation f : {activation::elu_plus_one, activation::relu}) {
    if (!is_function(r, l.q, f) || !is_function(r, l.k, f)) continue;
    l.feature = static_cast<std::int64_t>(f);
    l.q = r.input(l.q.node, 0);
    l.k = r.input(l.k.node, 0);
    break;
  }
  return true;
}

/// The causal mask over [n, m], as the node aligns it: the last query at the last key.
constexpr bool is_causal(Rewriter& r, Value v) {
  if (!r.is(v, op::mask) || r.old().get_integer(v.node, key::has_tensor) != 0 ||
      r.old().find(v.node, key::expression) == nullptr)
    return false;
  const auto root = r.old().get_integer(v.node, key::expression);
  if (root == mask::build::causal(r.graph().scalars)) return true;
  return r.old().get_integer(v.node, key::q_len) == r.old().get_integer(v.node, key::k_len) &&
         root == mask::build::causal(r.graph().scalars, mask::Alignment::top_left);
}

/// n = S v and d = S 1 with S = φ(q) φ(k)ᵀ, perhaps where causal.
constexpr bool match_quadratic(Rewriter& r, Value n, Value d, Linear& l) {
  Value s = r.input(n.node, 0);
  if (!(s == r.input(d.node, 0)) || r.users(s) != 2 || !is_column_of_ones(r, r.input(d.node, 1))) return false;
  l.v = r.input(n.node, 1);
  if (r.is(s, op::select)) {
    if (r.old().get_number(s.node, key::value) != 0 || !is_causal(r, r.input(s.node, 0)) ||
        !r.same_shape(s, r.input(s.node, 1)))
      return false;
    l.causal = true;
    s = r.input(s.node, 1);
    if (!r.single_use(s)) return false;
  }
  return r.is(s, op::matmul) && match_sides(r, r.input(s.node, 0), r.input(s.node, 1), l);
}

/// n = φ(q) (φ(k)ᵀ v) and d = φ(q) (φ(k)ᵀ 1).
constexpr bool match_associated(Rewriter& r, Value n, Value d, Linear& l) {
  const Value s = r.input(n.node, 1), z = r.input(d.node, 1);
  if (!r.is_single(s, op::matmul) || !r.is_single(z, op::matmul) || !(r.input(n.node, 0) == r.input(d.node, 0)) ||
      !(r.input(s.node, 0) == r.input(z.node, 0)) || !is_column_of_ones(r, r.input(z.node, 1)))
    return false;
  l.v = r.input(s.node, 1);
  return match_sides(r, r.input(n.node, 0), r.input(s.node, 0), l);
}

/// Equal leading dims; d with as many rows as n.
constexpr bool linear_shapes_fit(Rewriter& r, const Linear& l, std::int32_t out) {
  const std::vector<Dim> q = r.shape(l.q), k = r.shape(l.k), v = r.shape(l.v), y = r.shape({out, 0});
  const std::size_t rank = q.size();
  if (rank < 2 || rank > 4 || k.size() != rank || v.size() != rank || y.size() != rank) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i)
    if (k[i] != q[i] || v[i] != q[i] || y[i] != q[i]) return false;
  return y[rank - 2] == q[rank - 2] && y[rank - 1] == v[rank - 1];
}

constexpr bool replace_linear_attention(Rewriter& r, std::int32_t n) {
  if (!r.is({n, 0}, op::multiply)) return false;
  for (int side = 0; side < 2; ++side) {
    Value d = denominator_of(r, r.input(n, 1 - side));
    const Value numerator = r.input(n, side);
    if (!d.valid() || !r.is_single(numerator, op::matmul) || !r.same_shape({n, 0}, numerator)) continue;
    Linear l;
    if (r.is_single(d, op::add))
      for (int i = 0; i < 2; ++i)
        if (is_full(r, r.input(d.node, i), l.eps) && r.same_shape(d, r.input(d.node, 1 - i))) {
          d = r.input(d.node, 1 - i);
          break;
        }
    if (!r.is_single(d, op::matmul)) continue;
    Linear other = l;
    if (!match_quadratic(r, numerator, d, l)) {
      l = other;
      if (!match_associated(r, numerator, d, l)) continue;
    }
    // What is read moves down to here; an append in between would change a state that is read directly.
    if (r.is_state(l.q) || r.is_state(l.k) || r.is_state(l.v) || !linear_shapes_fit(r, l, n)) continue;

    NodeSpec a = r.beside(n, op::linear_attention);
    a.leaf = r.old().nodes[n].leaf;
    for (const Value x : {l.q, l.k, l.v}) a.inputs.push_back(to_rank_4(r, n, r.map(x), r.shape(x)));
    a.attributes.push_back(integer(key::causal, l.causal));
    a.attributes.push_back(number(key::eps, l.eps));
    a.attributes.push_back(integer(key::function, l.feature));
    a.attributes.push_back(integer(key::has_mask, 0));
    std::vector<Dim> out = r.shape({n, 0});
    const std::size_t rank = out.size();
    while (out.size() < 4) out.insert(out.end() - 2, r.graph().dims.number(1));
    a.outputs.push_back({f32, out});
    r.replace({n, 0}, from_rank_4(r, n, r.add(a), out, rank));
    return true;
  }
  return false;
}

}  // namespace written_out

constexpr Graph fuse_linear_attention(Graph g, PassReport* report = nullptr) {
  if (g.count(op::multiply) == 0 || g.count(op::activation) < 2)
    return nothing_to_do(std::move(g), "fuse_linear_attention", report);
  return rewrite_and_sweep(std::move(g), "fuse_linear_attention", report,
                           [](Rewriter& r, std::int32_t n) { return written_out::replace_linear_attention(r, n); });
}

}  // namespace treadle

#pragma once
// Rows of a tensor by id.

#include <treadle/graph/tensor.hpp>
#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_gather(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  const auto &x = in[0].shape, &ids = in[1].shape;
  if (in[1].dtype != i32 && in[1].dtype != i64)
    return rule::fail(f, error_kind::wrong_dtype, name(in[1].dtype), "i32 or i64 ids");
  const std::int64_t axis = rule::get_integer(s, key::axis), shared = rule::get_integer(s, key::batch_dims);
  if (shared < 0 || shared > static_cast<std::int64_t>(ids.size()) || axis < shared ||
      axis >= static_cast<std::int64_t>(x.size()))
    return rule::fail(f, error_kind::bad_attribute, Text("axis ").append(axis).append(", batch_dims ").append(shared),
                      Text("0 ≤ batch_dims ≤ axis in ").append(shape_text(g, x).view()));
  for (std::int64_t i = 0; i < shared; ++i)
    if (x[static_cast<std::size_t>(i)] != ids[static_cast<std::size_t>(i)])
      return rule::fail(f, error_kind::shape_mismatch, Text("ids ").append(shape_text(g, ids).view()),
                        Text("the first ").append(shared).append(" dims of ").append(shape_text(g, x).view()));
  std::vector<Dim> out(x.begin(), x.begin() + axis);
  for (auto d = ids.begin() + shared; d != ids.end(); ++d) out.push_back(*d);
  for (auto d = x.begin() + axis + 1; d != x.end(); ++d) out.push_back(*d);
  if (out.size() > static_cast<std::size_t>(max_rank))
    return rule::fail(f, error_kind::wrong_rank, shape_text(g, out), Text("at most ").append(max_rank).append(" dims"));
  return rule::one(out, in[0].dtype);
}

struct GatherOptions {
  std::int64_t axis = 0;
  std::int64_t batch_dims = 0;  ///< leading dims that x and ids share: each batch element has ids of its own
};

/// x's rows along `axis`, in the order of the ids (i32 or i64, any shape), whose dims take the axis's place:
/// x [.., n, ..], ids [..] → [.., ids.., ..] (numpy.take; with batch_dims tf.gather). Of any dtype. Ids outside [0, n)
/// are an error of the run.
///
///   gather(x, ids, {.axis = 1})                     // [batch, seq, d], [k] → [batch, k, d]
///   gather(x, ids, {.axis = 1, .batch_dims = 1})    // [batch, seq, d], [batch, k] → [batch, k, d]
constexpr Node gather(Node x, Node ids, GatherOptions o = {}, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::gather, "", *x.builder, where);
  s.attributes = {integer(key::axis, o.axis), integer(key::batch_dims, o.batch_dims)};
  return x.builder->add(s, {x, ids}, infer_gather);
}

}  // namespace treadle

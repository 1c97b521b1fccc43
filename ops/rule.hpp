#pragma once
// What every op file is made of: the types of a shape rule and of a cost rule, and small helpers for both.

#include <treadle/graph/builder.hpp>

#include <algorithm>
#include <source_location>
#include <vector>

namespace treadle {

using Where = std::source_location;
/// dtype and shape of a node's inputs, in order.
using Inputs = std::vector<OutputSpec>;
using Outputs = std::vector<OutputSpec>;

/// Shape rule: the outputs of a node, or the rule that it breaks.
using InferRule = Outputs (*)(Graph&, const NodeSpec&, const Inputs&, Failure&);
/// Cost rule: useful floating-point operations as a dim expression. `s.outputs` are filled in.
using FlopsRule = Dim (*)(Graph&, const NodeSpec&, const Inputs&);

namespace rule {

constexpr Outputs fail(Failure& f, error_kind kind, Text got, Text expected) {
  f.kind = kind;
  f.got = std::move(got);
  f.expected = std::move(expected);
  return {};
}

constexpr const Attribute* find(const NodeSpec& s, key k) {
  for (const Attribute& a : s.attributes)
    if (a.key == k) return &a;
  return nullptr;
}
constexpr std::int64_t get_integer(const NodeSpec& s, key k, std::int64_t otherwise = 0) {
  const Attribute* a = find(s, k);
  return a ? a->integer : otherwise;
}

constexpr Dim product(Graph& g, const std::vector<Dim>& shape) {
  Dim p = g.dims.number(1);
  for (Dim d : shape) p = g.dims.multiply(p, d);
  return p;
}

/// One output of the first input's dtype.
constexpr Outputs one(std::vector<Dim> shape, DType dtype = f32) {
  Outputs o;
  o.push_back({dtype, std::move(shape)});
  return o;
}

constexpr Outputs same_as_first(Graph&, const NodeSpec&, const Inputs& in, Failure&) {
  return one(in[0].shape, in[0].dtype);
}

/// NumPy broadcasting from the right; false if the shapes do not fit.
constexpr bool broadcast(Graph& g, const std::vector<Dim>& a, const std::vector<Dim>& b, std::vector<Dim>& out) {
  const std::size_t rank = std::max(a.size(), b.size());
  out.clear();
  for (std::size_t i = 0; i < rank; ++i) out.push_back(0);
  const Dim unit = g.dims.number(1);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : unit;
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : unit;
    if (x != y && x != unit && y != unit) return false;
    out[rank - 1 - i] = x == unit ? y : x;
  }
  return true;
}

constexpr Dim flops_none(Graph& g, const NodeSpec&, const Inputs&) { return g.dims.number(0); }
constexpr Dim flops_per_element(Graph& g, const NodeSpec& s, const Inputs&) { return product(g, s.outputs[0].shape); }

constexpr NodeSpec spec(op o, std::string_view leaf, Builder& b, const Where& where) {
  NodeSpec s;
  s.op = o;
  s.leaf = leaf.empty() ? -1 : b.graph().strings.intern(leaf);
  s.line = static_cast<std::int32_t>(where.line());
  return s;
}

}  // namespace rule
}  // namespace treadle

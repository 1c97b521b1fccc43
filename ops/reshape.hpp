#pragma once
// The same elements in another shape.

#include <treadle/ops/rule.hpp>

#include <optional>

namespace treadle {
namespace rule {

/// How many names the longest product in a dim multiplies.
constexpr int degree(const Graph& g, Dim d) {
  int most = 0;
  for (const DimTerm& t : g.dims.view().terms_of(d)) {
    int names = 0;
    for (int a : t.atoms) names += a >= 0;
    most = std::max(most, names);
  }
  return most;
}

/// Takes away dims that both shapes have, in any order: what is left is short enough to multiply.
constexpr void cancel(std::vector<Dim>& a, std::vector<Dim>& b) {
  for (std::size_t i = 0; i < a.size();) {
    std::size_t j = 0;
    while (j < b.size() && b[j] != a[i]) ++j;
    if (j == b.size()) {
      ++i;
      continue;
    }
    a.erase(a.begin() + static_cast<std::ptrdiff_t>(i));
    b.erase(b.begin() + static_cast<std::ptrdiff_t>(j));
  }
}

/// The dim that an atom alone is.
constexpr Dim atom_dim(Graph& g, int atom) {
  const DimAtom x = g.dims.atoms[static_cast<std::size_t>(atom)];
  if (x.kind == AtomKind::symbol) return g.dims.symbol(x.name);
  if (x.kind == AtomKind::ceil_div) return g.dims.ceil_div(x.a, x.b);
  return x.kind == AtomKind::min ? g.dims.min(x.a, x.b) : g.dims.max(x.a, x.b);
}

/// a / b where b is one product of a positive number and names, and divides every term of a.
constexpr std::optional<Dim> quotient(Graph& g, Dim a, Dim b) {
  if (g.dims.view().terms_of(b).size() != 1) return std::nullopt;
  const DimTerm by = g.dims.view().terms_of(b)[0];
  std::vector<DimTerm> terms;
  for (const DimTerm& t : g.dims.view().terms_of(a)) terms.push_back(t);
  Dim sum = g.dims.number(0);
  for (DimTerm t : terms) {
    if (by.coefficient < 1 || t.coefficient % by.coefficient != 0) return std::nullopt;
    for (int name : by.atoms) {
      if (name < 0) continue;
      std::size_t i = 0;
      while (i < t.atoms.size() && t.atoms[i] != name) ++i;
      if (i == t.atoms.size()) return std::nullopt;
      t.atoms[i] = -1;
    }
    Dim product = g.dims.number(t.coefficient / by.coefficient);
    for (int name : t.atoms)
      if (name >= 0) product = g.dims.multiply(product, atom_dim(g, name));
    sum = g.dims.add(sum, product);
  }
  return sum;
}

/// Whether the product fits into a dim expression.
constexpr bool can_multiply(const Graph& g, const std::vector<Dim>& shape) {
  int names = 0;
  for (Dim d : shape) names += degree(g, d);
  return names <= max_degree;
}

}  // namespace rule

/// The target shape is the node's output; the rule proves that it holds as many elements, as dim expressions: for every
/// length that a run may bind, not only for some.
constexpr Outputs infer_reshape(Graph& g, const NodeSpec& s, const Inputs& in, Failure& f) {
  std::vector<Dim> from = in[0].shape, to = s.outputs[0].shape;
  const auto empty = [&](const std::vector<Dim>& shape) {
    for (const Dim d : shape)
      if (g.dims.constant(d) == 0) return true;
    return false;
  };
  if (empty(from) && empty(to)) return rule::one(s.outputs[0].shape, in[0].dtype);
  rule::cancel(from, to);
  if (!rule::can_multiply(g, from) || !rule::can_multiply(g, to) || rule::product(g, from) != rule::product(g, to))
    return rule::fail(f, error_kind::shape_mismatch, shape_text(g, s.outputs[0].shape),
                      Text("as many elements as ").append(shape_text(g, in[0].shape).view()));
  return rule::one(s.outputs[0].shape, in[0].dtype);
}

/// To dims of the graph: for composites.
constexpr Node reshape_to(Node x, std::vector<Dim> shape, Where where = Where::current()) {
  Builder& b = *x.builder;
  NodeSpec s = rule::spec(op::reshape, "", b, where);
  OutputSpec out;
  out.dtype = b.dtype(x);
  out.shape = std::move(shape);
  s.outputs.push_back(out);
  return b.add(s, {x}, infer_reshape);
}

/// The elements of x in row-major order, in another shape: static and named dims, and at most one −1, which stands for
/// what is left. A view where the strides of x allow it, else one copy.
///
///   reshape(x, {batch, seq, 4, 16})       // of [batch, seq, 64]
///   reshape(x, {batch * seq, -1})
constexpr Node reshape(Node x, std::initializer_list<DimSpec> shape, Where where = Where::current()) {
  Builder& b = *x.builder;
  if (!b.usable(x)) return {&b, {}};
  Graph& g = b.graph();
  std::vector<Dim> to, known;
  std::size_t open = shape.size();
  for (const DimSpec& d : shape) {
    to.push_back(b.intern(d));
    if (open == shape.size() && g.dims.constant(to.back()) == -1)
      open = to.size() - 1;
    else
      known.push_back(to.back());
  }
  if (open == shape.size()) return reshape_to(x, std::move(to), where);
  std::vector<Dim> from = b.shape(x);
  rule::cancel(from, known);
  if (rule::can_multiply(g, known) && rule::can_multiply(g, from)) {
    const Dim whole = rule::product(g, from), part = rule::product(g, known);
    if (const auto rest = rule::quotient(g, whole, part)) to[open] = *rest;
  }
  return reshape_to(x, std::move(to), where);
}

}  // namespace treadle

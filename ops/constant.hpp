#pragma once
// Tensors that are known when the model is declared.

#include <treadle/ops/rule.hpp>

namespace treadle {

constexpr Outputs infer_constant(Graph& g, const NodeSpec& s, const Inputs&, Failure& f) {
  const OutputSpec& out = s.outputs[0];
  if (out.dtype == f64) return rule::fail(f, error_kind::wrong_dtype, "f64", "f32, i32, i64 or bool");
  if (const Attribute* data = rule::find(s, key::data)) {
    const auto count = static_cast<std::int64_t>(data->number);
    if (g.dims.constant(rule::product(g, out.shape)) != count)
      return rule::fail(f, error_kind::shape_mismatch, Text().append(count).append(" numbers"),
                        Text("as many as ").append(shape_text(g, out.shape).view()).append(" holds"));
  } else if (rule::find(s, key::value) == nullptr) {
    return rule::fail(f, error_kind::bad_attribute, "a constant without numbers", "data or a value");
  }
  return s.outputs;
}

/// The numbers in row-major order, kept in the graph's tables: for tables of some hundreds (larger ones are
/// parameters). Integers are exact up to 2⁵³; a boolean is true where the number is not 0.
///
///   constant(g, {2, 2}, {1, 0, 0, 1})
constexpr Node constant(Builder& b, std::initializer_list<std::int64_t> shape, const std::vector<double>& numbers,
                        DType dtype = f32, Where where = Where::current()) {
  NodeSpec s = rule::spec(op::constant, "", b, where);
  OutputSpec out;
  out.dtype = dtype;
  for (std::int64_t d : shape) out.shape.push_back(b.dim_number(d));
  s.outputs.push_back(out);
  auto& tables = b.graph().tables;
  s.attributes.push_back(
      data_attribute(key::data, static_cast<std::int64_t>(tables.size()), static_cast<std::int64_t>(numbers.size())));
  for (double x : numbers) tables.push_back(std::bit_cast<std::int64_t>(x));
  return b.add(s, {}, infer_constant);
}

/// Over dims of the graph: for composites.
constexpr Node full_of(Builder& b, std::vector<Dim> shape, double value, DType dtype = f32,
                       Where where = Where::current()) {
  NodeSpec s = rule::spec(op::constant, "", b, where);
  OutputSpec out;
  out.dtype = dtype;
  out.shape = std::move(shape);
  s.outputs.push_back(out);
  s.attributes.push_back(number(key::value, value));
  return b.add(s, {}, infer_constant);
}

/// One number for all elements, of any shape, named dims too (torch.full). Takes no memory.
constexpr Node full(Builder& b, std::initializer_list<DimSpec> shape, double value, DType dtype = f32,
                    Where where = Where::current()) {
  std::vector<Dim> dims;
  for (const DimSpec& d : shape) dims.push_back(b.intern(d));
  return full_of(b, std::move(dims), value, dtype, where);
}

}  // namespace treadle

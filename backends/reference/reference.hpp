#pragma once
// The reference backend: evaluates every node of a graph by the formulas of ops/*.cpp, in float or double. It is the
// oracle of the other backends and never a baseline of a benchmark.

#include <treadle/backends/dim_values.hpp>
#include <treadle/backends/error.hpp>
#include <treadle/backends/parameters.hpp>
#include <treadle/ops/reference.hpp>

#include <map>
#include <string>

namespace treadle::reference {

using treadle::DimValues;
template <class T>
using Tensors = std::map<std::string, Array<T>, std::less<>>;

/// The results of the graph by the leaf names of its output nodes.
///
/// Inputs and parameters are found by full name (parameters of a repeat: "h.3.attn.q.weight"). States are read and
/// updated in place by their full name; one that is missing starts at 0 and is added. Integers and booleans are held as
/// T. Throws Error for missing or wrongly shaped tensors, dims without a value, ids outside their table.
template <class T>
Tensors<T> evaluate(GraphView graph, const DimValues& dims, const Tensors<T>& inputs, const Tensors<T>& parameters,
                    Tensors<T>* states = nullptr);

/// The same with parameters as the executors take them.
template <class T>
Tensors<T> evaluate(GraphView graph, const DimValues& dims, const Tensors<T>& inputs, const Parameters& parameters,
                    Tensors<T>* states = nullptr);

/// Copies a view of any dtype and any strides. Throws Error if T does not hold an integer exactly.
template <class T>
Array<T> from_view(const TensorView& view);
/// Copies into memory of any dtype and any strides; shapes must be equal. Booleans: not 0.
template <class T>
void to_view(const Array<T>& from, const TensorView& to);

}  // namespace treadle::reference

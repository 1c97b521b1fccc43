#pragma once
// Named dims bound to numbers.

#include <treadle/graph/graph.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace treadle {

/// Named dims ("batch", "seq", …) and their lengths in a run.
using DimValues = std::map<std::string, std::int64_t>;

/// Evaluates the dims of one graph. Errors: a dim that needs a name without a value, or a negative length.
class BoundDims {
 public:
  /// Names that the graph does not have are ignored; names that it has may be missing as long as no dim needs them.
  BoundDims(GraphView graph, const DimValues& values);

  /// The number behind `d`. Throws Error if a named dim in it has no value.
  std::int64_t operator()(Dim d) const;
  std::vector<std::int64_t> operator()(std::span<const Dim> shape) const;
  /// Of a node's attribute: a dim or an integer.
  std::int64_t attribute(std::int32_t node, key k, std::int64_t otherwise = 0) const;

 private:
  GraphView graph_;
  std::vector<std::int64_t> values_;  ///< one per atom
  std::vector<char> bound_;

  void require(Dim d) const;
};

/// The names of the dims that a graph's inputs, states and nodes use.
std::vector<std::string> dim_names(GraphView graph);

/// "[2, 3, 4]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace treadle
